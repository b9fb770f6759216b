// SPDX-License-Identifier: Apache-2.0
// Gradients of discrete Fourier transforms between real and complex numbers. Transforms are linear, and
// each gradient is that of the adjoint map, which is a transform, too.
#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

int32_t last_of(Ints axes, const Tensor& x) {
  return static_cast<int32_t>(axes.back() < 0 ? axes.back() + x->ndim : axes.back());
}

// Half of a spectrum of length n stands for two elements at each index but 0 and n / 2 of an even n.
// Multiplies the elements at these other indices.
Tensor scaled_inside(Scope& scope, const Tensor& half, int32_t axis, int64_t n, double factor) {
  if (!scope.ok()) return {};
  const int64_t inside = (n + 1) / 2;  // the first index behind them
  if (inside <= 1) return half;
  const Tensor middle = ops::multiply(scope, ops::narrow(scope, half, axis, 1, inside - 1), factor);
  std::vector<Tensor> parts = {ops::narrow(scope, half, axis, 0, 1), middle};
  if (n % 2 == 0) parts.push_back(ops::narrow(scope, half, axis, inside, 1));
  return ops::concat(scope, parts, axis);
}

}  // namespace

TENON_DECOMPOSE(fft_r2c_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const Ints axes = ints_of(args[2]);
  const double scale = float_of(args[4]);
  if (!bool_of(args[3]))
    return finish(scope, outs,
                  ops::real(scope, ops::fft_c2c(scope, g, list_of(axes), false, scale)));
  const int32_t last = last_of(axes, g);
  const int64_t n = ints_of(args[1])[static_cast<size_t>(last)];
  g = scaled_inside(scope, g, last, n, 0.5);
  return finish(scope, outs, ops::fft_c2r(scope, g, list_of(axes), n, scale));
}

TENON_DECOMPOSE(fft_c2r_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const Ints axes = ints_of(args[1]);
  const int32_t last = last_of(axes, g);
  const Tensor spectrum = ops::fft_r2c(scope, g, list_of(axes), true, float_of(args[2]));
  return finish(scope, outs, scaled_inside(scope, spectrum, last, g->shape[last], 2.0));
}

TENON_DECOMPOSE(overlap_add) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int64_t step = int_of(args[1]);
  if (x->ndim < 2 || step < 1 || x->shape[x->ndim - 1] < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "overlap_add",
                        "expected at least one frame in shape [..., frame_length, frames] and "
                        "hop_length of at least 1, got shape %s and %lld",
                        shape_text(*x.get()).c_str(), ll(step));
  Shape shape = sizes_of(x);
  const int64_t frames = shape.back();
  shape.pop_back();
  const int64_t size = shape.back();
  shape.back() = size + (frames - 1) * step;
  return finish(scope, outs,
                ops::sliding_window_grad(scope, ops::transpose(scope, x), list_of(shape),
                                         x->ndim - 2, size, step, 1));
}

}  // namespace tenon::standard_ops
