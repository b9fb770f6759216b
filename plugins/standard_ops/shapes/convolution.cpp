// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients.
#include "shapes/window.hpp"

namespace tenon::standard_ops {
namespace {

constexpr const char* kImage = "[batch, channels, height, width]";
constexpr const char* kFilters = "[filters, channels / groups, height, width]";

int32_t promoted(const tenon_tensor& x, const tenon_tensor& y) {
  return host->dtype_promote(x.dtype, y.dtype);
}

tenon_status expect_channels(const char* op, Ints image, Ints filters, int64_t groups,
                             tenon_err* err) {
  if (image[1] == filters[1] * groups) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected weight.shape[1] * groups == channels, got %lld * %lld and %lld "
                      "from shapes %s and %s",
                      ll(filters[1]), ll(groups), ll(image[1]), list_text(filters).c_str(),
                      list_text(image).c_str());
}

// `grad_out` must have the shape that conv2d gives.
tenon_status expect_result(const char* op, const tenon_tensor& grad_out, Ints image, Ints filters,
                           const Window& window, tenon_err* err) {
  int64_t counts[2];
  TENON_TRY(count_windows(op, window, image, counts, err));
  const int64_t wanted[] = {image[0], filters[0], counts[0], counts[1]};
  if (std::ranges::equal(shape_of(grad_out), wanted)) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected grad_out of shape %s, got %s",
                      list_text(wanted).c_str(), shape_text(grad_out).c_str());
}

tenon_status expect_four(const char* op, const char* name, Ints shape, const char* layout,
                         tenon_err* err) {
  if (shape.size() == 4 && *std::ranges::min_element(shape) >= 0) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %s of four extents, %s, got %s",
                      name, layout, list_text(shape).c_str());
}

}  // namespace

TENON_INFER(conv2d) {
  const tenon_tensor &x = tensor_of(args[0]), &weight = tensor_of(args[1]);
  const tenon_tensor* bias = optional_tensor(args[2]);
  TENON_TRY(expect_ndim("conv2d", "x", x, 4, kImage, err));
  TENON_TRY(expect_ndim("conv2d", "weight", weight, 4, kFilters, err));
  Window window;
  int64_t groups, counts[2];
  TENON_TRY(read_convolution("conv2d", shape_of(weight), args, 3, &window, &groups, err));
  TENON_TRY(expect_channels("conv2d", shape_of(x), shape_of(weight), groups, err));
  if (bias && (bias->ndim != 1 || bias->shape[0] != weight.shape[0]))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "conv2d",
                        "expected bias of shape [%lld], got %s", ll(weight.shape[0]),
                        shape_text(*bias).c_str());
  TENON_TRY(count_windows("conv2d", window, shape_of(x), counts, err));
  int32_t dtype = promoted(x, weight);
  if (bias) dtype = host->dtype_promote(dtype, bias->dtype);
  const int64_t shape[] = {x.shape[0], weight.shape[0], counts[0], counts[1]};
  set_new(outs[0], dtype, shape);
  return TENON_OK;
}

TENON_INFER(conv2d_integer) {
  const char* op = "conv2d_integer";
  const tenon_tensor &x = tensor_of(args[0]), &weight = tensor_of(args[1]);
  const tenon_tensor *x_zero = optional_tensor(args[2]), *weight_zero = optional_tensor(args[3]);
  TENON_TRY(expect_ndim(op, "x", x, 4, kImage, err));
  TENON_TRY(expect_ndim(op, "weight", weight, 4, kFilters, err));
  Window window;
  int64_t groups, counts[2];
  TENON_TRY(read_convolution(op, shape_of(weight), args, 4, &window, &groups, err));
  TENON_TRY(expect_channels(op, shape_of(x), shape_of(weight), groups, err));
  if (x_zero && (x_zero->ndim > 1 || x_zero->numel != 1))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x_zero_point to be one number, got shape %s",
                        shape_text(*x_zero).c_str());
  if (weight_zero &&
      (weight_zero->ndim > 1 || (weight_zero->numel != 1 && weight_zero->numel != weight.shape[0])))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected weight_zero_point to be one number or one for each of the %lld "
                        "filters, got shape %s",
                        ll(weight.shape[0]), shape_text(*weight_zero).c_str());
  TENON_TRY(count_windows(op, window, shape_of(x), counts, err));
  const int64_t shape[] = {x.shape[0], weight.shape[0], counts[0], counts[1]};
  set_new(outs[0], TENON_DTYPE_I32, shape);
  return TENON_OK;
}

TENON_INFER(conv2d_input_grad) {
  const char* op = "conv2d_input_grad";
  const tenon_tensor &grad_out = tensor_of(args[0]), &weight = tensor_of(args[1]);
  Ints image = ints_of(args[2]);
  TENON_TRY(expect_ndim(op, "weight", weight, 4, kFilters, err));
  TENON_TRY(expect_four(op, "input_shape", image, kImage, err));
  Window window;
  int64_t groups;
  TENON_TRY(read_convolution(op, shape_of(weight), args, 3, &window, &groups, err));
  TENON_TRY(expect_channels(op, image, shape_of(weight), groups, err));
  TENON_TRY(expect_result(op, grad_out, image, shape_of(weight), window, err));
  set_new(outs[0], promoted(grad_out, weight), image);
  return TENON_OK;
}

TENON_INFER(conv2d_weight_grad) {
  const char* op = "conv2d_weight_grad";
  const tenon_tensor &grad_out = tensor_of(args[0]), &x = tensor_of(args[1]);
  Ints filters = ints_of(args[2]);
  TENON_TRY(expect_ndim(op, "x", x, 4, kImage, err));
  TENON_TRY(expect_four(op, "weight_shape", filters, kFilters, err));
  Window window;
  int64_t groups;
  TENON_TRY(read_convolution(op, filters, args, 3, &window, &groups, err));
  TENON_TRY(expect_channels(op, shape_of(x), filters, groups, err));
  TENON_TRY(expect_result(op, grad_out, shape_of(x), filters, window, err));
  set_new(outs[0], promoted(grad_out, x), filters);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
