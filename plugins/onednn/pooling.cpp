// SPDX-License-Identifier: Apache-2.0
// avg_pool2d and its gradient. Maximum pooling stays with the CPU plugin: oneDNN returns its indices in
// a format of its own and does not propagate NaN.
#include "kernels.hpp"

namespace tenon::onednn {
namespace {

struct Pooling {
  Description images, results;
  PoolingWindow window;
  int algorithm;
};

// args: kernel_size, stride, padding, ceil_mode, count_include_pad. Returns false where ceil_mode adds
// a window that ends outside the padded image, because oneDNN divides by another count there.
bool read_window(const tenon_value* args, const int64_t* image, int64_t* extents, Pooling& p) {
  read_pair(args[0], p.window.kernel);
  read_pair(tenon_arg_ints(&args[1]) ? args[1] : args[0], p.window.strides);
  read_pair(args[2], p.window.left);
  const bool rounds_up = tenon_arg_bool(&args[3]);
  for (int i = 0; i < 2; ++i) {
    if (p.window.strides[i] <= 0) return false;
    const int64_t span = image[i] + 2 * p.window.left[i] - p.window.kernel[i];
    if (span < 0 || (rounds_up && span % p.window.strides[i] != 0)) return false;
    extents[i] = span / p.window.strides[i] + 1;
    // oneDNN requires that the last window ends where the padded image ends.
    p.window.right[i] =
        (extents[i] - 1) * p.window.strides[i] + p.window.kernel[i] - image[i] - p.window.left[i];
  }
  p.algorithm = tenon_arg_bool(&args[4]) ? kAverageWithPadding : kAverageWithoutPadding;
  return true;
}

Key& add_window(Key& key, const tenon_value* args) {
  for (int i = 0; i < 3; ++i) {
    int64_t pair[2];
    read_pair(tenon_arg_ints(&args[i]) ? args[i] : args[0], pair);
    key.add(pair[0]).add(pair[1]);
  }
  return key.add(int64_t{tenon_arg_bool(&args[3])}).add(int64_t{tenon_arg_bool(&args[4])});
}

// -- forward: (x, kernel_size, stride, padding, ceil_mode, count_include_pad) ----------------------

Key forward_key(const tenon_value* args, const tenon_tensor* out) {
  Key key(kAvgPool2d);
  key.add(tenon_arg_tensor(&args[0]));
  return add_window(key, args + 1).add(out);
}

Build forward_build(const tenon_value* args, const tenon_tensor* out) {
  return [args, out](const Api& api) -> std::unique_ptr<Program> {
    const tenon_tensor* x = tenon_arg_tensor(&args[0]);
    if (!has_elements(x) || !is_dense_image(*x)) return nullptr;
    Pooling p;
    int64_t extents[2];
    if (!read_window(args + 1, x->shape + 2, extents, p)) return nullptr;
    p.images = describe(*x);
    normalize_strides(p.images);
    p.results = describe_image_like(*x, {x->shape[0], x->shape[1], extents[0], extents[1]});
    const Layout images = api.layout(p.images), results = api.layout(p.results);
    if (!images || !results) return nullptr;
    if (out) {
      p.results = describe(*out);
      if (!normalize_strides(p.results)) return nullptr;
    }
    const Operand operands[] = {{kSource, kQuerySource, false, p.images},
                                {kDestination, kQueryDestination, true, p.results}};
    return Program::make(api, api.pooling(p.algorithm, images, results, p.window), operands);
  };
}

int32_t can_run_forward(const tenon_value* args, uint32_t) {
  return can_build(forward_key(args, nullptr), forward_build(args, nullptr));
}

tenon_status run_forward(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                         uint32_t, tenon_err* err) {
  const tenon_tensor* out = tenon_out_tensor(&outs[0]);
  void* const data[] = {data_of(tenon_arg_tensor(&args[0])), data_of(out)};
  return run_cached(forward_key(args, out), forward_build(args, out), ctx, data, err);
}

// -- gradient: (grad_out, input_shape, kernel_size, ...) -------------------------------------------

Key gradient_key(const tenon_value* args, const tenon_tensor* out) {
  Key key(kAvgPool2dGrad);
  key.add(tenon_arg_tensor(&args[0]));
  const int64_t* shape = tenon_arg_ints(&args[1]);
  for (uint64_t i = 0; i < tenon_arg_count(&args[1]); ++i) key.add(shape[i]);
  return add_window(key, args + 2).add(out);
}

Build gradient_build(const tenon_value* args, const tenon_tensor* out) {
  return [args, out](const Api& api) -> std::unique_ptr<Program> {
    const tenon_tensor* grad_out = tenon_arg_tensor(&args[0]);
    if (!has_elements(grad_out) || !is_dense_image(*grad_out)) return nullptr;
    if (tenon_arg_count(&args[1]) != 4) return nullptr;
    const int64_t* shape = tenon_arg_ints(&args[1]);
    Pooling p;
    int64_t extents[2];
    if (!read_window(args + 2, shape + 2, extents, p)) return nullptr;
    if (extents[0] != grad_out->shape[2] || extents[1] != grad_out->shape[3]) return nullptr;
    p.results = describe(*grad_out);
    normalize_strides(p.results);
    p.images = describe_image_like(*grad_out, {shape, shape + 4});
    const Layout images = api.layout(p.images), results = api.layout(p.results);
    if (!images || !results) return nullptr;
    const PrimitiveDesc forward = api.pooling(p.algorithm, images, results, p.window);
    if (!forward) return nullptr;
    if (out) {
      p.images = describe(*out);
      if (!normalize_strides(p.images)) return nullptr;
    }
    const Operand operands[] = {{kDestinationGradient, kQueryDestinationGradient, false, p.results},
                                {kSourceGradient, kQuerySourceGradient, true, p.images}};
    return Program::make(api, api.pooling_gradient(p.algorithm, images, results, p.window, forward),
                         operands);
  };
}

int32_t can_run_gradient(const tenon_value* args, uint32_t) {
  return can_build(gradient_key(args, nullptr), gradient_build(args, nullptr));
}

tenon_status run_gradient(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                          uint32_t, tenon_err* err) {
  const tenon_tensor* out = tenon_out_tensor(&outs[0]);
  void* const data[] = {data_of(tenon_arg_tensor(&args[0])), data_of(out)};
  return run_cached(gradient_key(args, out), gradient_build(args, out), ctx, data, err);
}

}  // namespace

KernelList pooling_kernels() {
  constexpr uint32_t kAnyStrides = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT;
  return {
      kernel_of("tenon::avg_pool2d", kFloats, kAnyStrides, run_forward, can_run_forward),
      kernel_of("tenon::avg_pool2d_grad", kFloats, kAnyStrides, run_gradient, can_run_gradient)};
}

}  // namespace tenon::onednn
