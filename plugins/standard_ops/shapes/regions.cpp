// SPDX-License-Identifier: Apache-2.0
#include "shapes/regions.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status check_image(const char* op, Ints image, tenon_err* err) {
  const bool has_pixels = image.size() == 4 && image[2] > 0 && image[3] > 0;
  if (has_pixels) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected images [N, C, H, W] with elements, got shape %s",
                      list_text(image).c_str());
}

tenon_status check_boxes(const char* op, const tenon_tensor& boxes, const tenon_tensor& index,
                         tenon_err* err) {
  const bool fits =
      boxes.ndim == 2 && boxes.shape[1] == 4 && index.ndim == 1 && index.shape[0] == boxes.shape[0];
  if (fits) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected boxes [K, 4] and image_index [K], got shapes %s and %s",
                      shape_text(boxes).c_str(), shape_text(index).c_str());
}

}  // namespace

tenon_status read_roi_align(const char* op, const tenon_value* rest, Ints image, RoiAlign* out,
                            tenon_err* err) {
  TENON_TRY(check_image(op, image, err));
  std::ranges::copy(image, out->image);
  TENON_TRY(read_pair(op, "output_size", ints_of(rest[0]), 1, out->bins, err));
  out->scale = float_of(rest[1]);
  out->ratio = int_of(rest[2]);
  out->aligned = bool_of(rest[3]);
  return TENON_OK;
}

tenon_status read_roi_align_grad(const char* op, const tenon_value* args, Ints image, RoiAlign* out,
                                 tenon_err* err) {
  const tenon_tensor& grad_out = tensor_of(args[0]);
  TENON_TRY(expect_ndim(op, "grad_out", grad_out, 4, "[K, C, height, width]", err));
  TENON_TRY(check_image(op, image, err));
  std::ranges::copy(image, out->image);
  std::copy_n(grad_out.shape + 2, 2, out->bins);
  out->scale = float_of(args[4]);
  out->ratio = int_of(args[5]);
  out->aligned = bool_of(args[6]);
  return TENON_OK;
}

TENON_INFER(nms_mask) {
  const char* op = "nms_mask";
  const tenon_tensor& boxes = tensor_of(args[0]);
  const tenon_tensor* categories = optional_tensor(args[1]);
  if (boxes.ndim != 2 || boxes.shape[1] != 4 ||
      (categories && (categories->ndim != 1 || categories->shape[0] != boxes.shape[0])))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected boxes [N, 4] and categories [N] if any, got boxes of shape %s",
                        shape_text(boxes).c_str());
  const int64_t shape[] = {boxes.shape[0]};
  set_new(outs[0], TENON_DTYPE_BOOL, shape);
  return TENON_OK;
}

TENON_INFER(roi_align) {
  const char* op = "roi_align";
  const tenon_tensor &x = tensor_of(args[0]), &boxes = tensor_of(args[1]);
  RoiAlign geometry;
  TENON_TRY(read_roi_align(op, args + 3, shape_of(x), &geometry, err));
  TENON_TRY(check_boxes(op, boxes, tensor_of(args[2]), err));
  const int64_t shape[] = {boxes.shape[0], x.shape[1], geometry.bins[0], geometry.bins[1]};
  set_new(outs[0], x.dtype, shape);
  return TENON_OK;
}

TENON_INFER(roi_align_grad) {
  const char* op = "roi_align_grad";
  const tenon_tensor &grad_out = tensor_of(args[0]), &boxes = tensor_of(args[1]);
  const Ints image = ints_of(args[3]);
  RoiAlign geometry;
  TENON_TRY(read_roi_align_grad(op, args, image, &geometry, err));
  TENON_TRY(check_boxes(op, boxes, tensor_of(args[2]), err));
  if (grad_out.shape[0] != boxes.shape[0] || grad_out.shape[1] != image[1])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected grad_out of shape [%lld, %lld, height, width], got %s",
                        ll(boxes.shape[0]), ll(image[1]), shape_text(grad_out).c_str());
  set_new(outs[0], grad_out.dtype, image);
  return TENON_OK;
}

TENON_INFER(roi_argmax) {
  const char* op = "roi_pool";
  const tenon_tensor &x = tensor_of(args[0]), &boxes = tensor_of(args[1]);
  TENON_TRY(check_image(op, shape_of(x), err));
  TENON_TRY(check_boxes(op, boxes, tensor_of(args[2]), err));
  int64_t bins[2] = {};
  TENON_TRY(read_pair(op, "output_size", ints_of(args[3]), 1, bins, err));
  const int64_t shape[] = {boxes.shape[0], x.shape[1], bins[0], bins[1]};
  set_new(outs[0], TENON_DTYPE_I64, shape);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
