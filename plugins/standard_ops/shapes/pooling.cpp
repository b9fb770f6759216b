// SPDX-License-Identifier: Apache-2.0
// Pooling.
#include "shapes/window.hpp"

namespace tenon::standard_ops {
namespace {

constexpr const char* kImage = "[batch, channels, height, width]";

// How many windows a maximum over [N, C, H, W] has, with its settings from args[first].
tenon_status count_largest(const tenon_value* args, uint32_t first, const tenon_tensor& x,
                           int64_t counts[2], tenon_err* err) {
  const char* op = "max_pool2d";
  TENON_TRY(expect_ndim(op, "x", x, 4, kImage, err));
  Window window;
  TENON_TRY(read_pooling(op, args, first, &window, err));
  TENON_TRY(read_pair(op, "dilation", ints_of(args[first + 3]), 1, window.dilation, err));
  window.ceil_mode = bool_of(args[first + 4]);
  return count_windows(op, window, shape_of(x), counts, err);
}

}  // namespace

TENON_INFER(max_pool2d_with_indices) {
  const tenon_tensor& x = tensor_of(args[0]);
  int64_t counts[2];
  TENON_TRY(count_largest(args, 1, x, counts, err));
  const int64_t shape[] = {x.shape[0], x.shape[1], counts[0], counts[1]};
  set_new(outs[0], x.dtype, shape);
  set_new(outs[1], TENON_DTYPE_I64, shape);
  return TENON_OK;
}

TENON_INFER(max_pool2d) {
  const tenon_tensor& x = tensor_of(args[0]);
  int64_t counts[2];
  TENON_TRY(count_largest(args, 1, x, counts, err));
  const int64_t shape[] = {x.shape[0], x.shape[1], counts[0], counts[1]};
  set_new(outs[0], x.dtype, shape);
  return TENON_OK;
}

TENON_INFER(max_pool2d_input_grad) {
  const tenon_tensor& x = tensor_of(args[1]);
  int64_t counts[2];
  TENON_TRY(count_largest(args, 3, x, counts, err));
  const int64_t wanted[] = {x.shape[0], x.shape[1], counts[0], counts[1]};
  const char* names[] = {"grad_out", "", "largest"};
  for (int i : {0, 2}) {
    const tenon_tensor& each = tensor_of(args[i]);
    if (each.dtype == x.dtype && std::ranges::equal(shape_of(each), wanted)) continue;
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "max_pool2d_input_grad",
                        "expected %s of dtype %s and shape %s, got %s %s", names[i],
                        host->dtype_name(x.dtype), list_text(wanted).c_str(),
                        host->dtype_name(each.dtype), shape_text(each).c_str());
  }
  set_like(outs[0], x);
  return TENON_OK;
}

TENON_INFER(avg_pool2d) {
  const char* op = "avg_pool2d";
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_ndim(op, "x", x, 4, kImage, err));
  Window window;
  int64_t counts[2];
  TENON_TRY(read_pooling(op, args, 1, &window, err));
  window.ceil_mode = bool_of(args[4]);
  TENON_TRY(count_windows(op, window, shape_of(x), counts, err));
  const int64_t shape[] = {x.shape[0], x.shape[1], counts[0], counts[1]};
  set_new(outs[0], x.dtype, shape);
  return TENON_OK;
}

TENON_INFER(avg_pool2d_grad) {
  const char* op = "avg_pool2d_grad";
  const tenon_tensor& grad_out = tensor_of(args[0]);
  Ints image = ints_of(args[1]);
  if (image.size() != 4)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected input_shape %s, got %s", kImage,
                        list_text(image).c_str());
  Window window;
  int64_t counts[2];
  TENON_TRY(read_pooling(op, args, 2, &window, err));
  window.ceil_mode = bool_of(args[5]);
  TENON_TRY(count_windows(op, window, image, counts, err));
  const int64_t wanted[] = {image[0], image[1], counts[0], counts[1]};
  if (!std::ranges::equal(shape_of(grad_out), wanted))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected grad_out of shape %s, got %s",
                        list_text(wanted).c_str(), shape_text(grad_out).c_str());
  set_new(outs[0], grad_out.dtype, image);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
