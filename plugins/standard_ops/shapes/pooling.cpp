// SPDX-License-Identifier: Apache-2.0
// Pooling.
#include "shapes/window.hpp"

namespace tenon::standard_ops {
namespace {

constexpr const char* kImage = "[batch, channels, height, width]";

// The shape of maxima over [N, C, H, W].
tenon_status shape_of_largest(const tenon_value* args, int64_t shape[4], tenon_err* err) {
  const char* op = "max_pool2d";
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_ndim(op, "x", x, 4, kImage, err));
  Window window;
  TENON_TRY(read_pooling(op, args, 1, &window, err));
  TENON_TRY(read_pair(op, "dilation", ints_of(args[4]), 1, window.dilation, err));
  window.ceil_mode = bool_of(args[5]);
  shape[0] = x.shape[0];
  shape[1] = x.shape[1];
  return count_windows(op, window, shape_of(x), shape + 2, err);
}

}  // namespace

TENON_INFER(max_pool2d_with_indices) {
  int64_t shape[4];
  TENON_TRY(shape_of_largest(args, shape, err));
  set_new(outs[0], tensor_of(args[0]).dtype, shape);
  set_new(outs[1], TENON_DTYPE_I64, shape);
  return TENON_OK;
}

TENON_INFER(max_pool2d) {
  int64_t shape[4];
  TENON_TRY(shape_of_largest(args, shape, err));
  set_new(outs[0], tensor_of(args[0]).dtype, shape);
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
