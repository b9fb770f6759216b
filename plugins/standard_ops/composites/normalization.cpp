// SPDX-License-Identifier: Apache-2.0
// Normalisation and its gradients. The gradients compute the statistics from `x` again, so that
// they can be differentiated with respect to it.
#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// x brought to mean 0 and variance 1 over `axes`, and what that took.
struct Normalized {
  Tensor x, mean, var, invstd;
};

Normalized normalized(Scope& scope, const Tensor& x, const Shape& axes, double eps) {
  Normalized n;
  n.mean = ops::mean(scope, x, axes, true);
  Tensor away = ops::subtract(scope, x, n.mean);
  n.var = ops::mean(scope, ops::square(scope, away), axes, true);
  n.invstd = ops::rsqrt(scope, ops::add(scope, n.var, eps));
  n.x = ops::multiply(scope, away, n.invstd);
  return n;
}

// Gradient of `normalized` with respect to its argument.
Tensor through_normalization(Scope& scope, const Tensor& grad, const Normalized& n,
                             const Shape& axes) {
  Tensor shared = ops::mean(scope, grad, axes, true);
  Tensor along = ops::mean(scope, ops::multiply(scope, grad, n.x), axes, true);
  Tensor rest =
      ops::subtract(scope, ops::subtract(scope, grad, shared), ops::multiply(scope, n.x, along));
  return ops::multiply(scope, rest, n.invstd);
}

// Every axis but that of channels.
Shape all_but_channels(const Tensor& x) {
  Shape axes = {0};
  for (int64_t axis = 2; axis < x->ndim; ++axis) axes.push_back(axis);
  return axes;
}

Shape last_axes(const Tensor& x, int64_t count) {
  Shape axes;
  for (int64_t axis = x->ndim - count; axis < x->ndim; ++axis) axes.push_back(axis);
  return axes;
}

Shape first_axes(const Tensor& x, int64_t without) {
  Shape axes;
  for (int64_t axis = 0; axis < x->ndim - without; ++axis) axes.push_back(axis);
  return axes;
}

// x * weight + bias, each if present, as vectors over channels.
Tensor scale_channels(Scope& scope, Tensor x, const Tensor& weight, const Tensor& bias) {
  if (!scope.ok()) return {};
  if (weight) x = ops::multiply(scope, x, ops::channel_view(scope, weight, x->ndim));
  if (bias) x = ops::add(scope, x, ops::channel_view(scope, bias, x->ndim));
  return x;
}

}  // namespace

TENON_DECOMPOSE(batch_norm) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), weight = operand(scope, args[1]),
         bias = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  Normalized n = normalized(scope, x, all_but_channels(x), float_of(args[3]));
  Tensor out = scale_channels(scope, n.x, weight, bias);
  return finish(scope, outs, out, ops::reshape(scope, n.mean, {-1}),
                ops::reshape(scope, n.var, {-1}));
}

TENON_DECOMPOSE(batch_norm_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), x = operand(scope, args[1]),
         weight = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  Shape axes = all_but_channels(x);
  Normalized n = normalized(scope, x, axes, float_of(args[5]));
  Tensor dweight = ops::sum(scope, ops::multiply(scope, grad_out, n.x), axes);
  Tensor dbias = ops::sum(scope, grad_out, axes);
  Tensor grad = scale_channels(scope, grad_out, weight, {});
  return finish(scope, outs, through_normalization(scope, grad, n, axes), dweight, dbias);
}

TENON_DECOMPOSE(batch_norm_inference) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), mean = operand(scope, args[1]), var = operand(scope, args[2]);
  Tensor weight = operand(scope, args[3]), bias = operand(scope, args[4]);
  if (!scope.ok()) return scope.status();
  for (const Tensor* parameter : {&mean, &var, &weight, &bias})
    if (*parameter &&
        (x->ndim < 2 || (*parameter)->ndim != 1 || (*parameter)->shape[0] != x->shape[1]))
      return shapes::fail(
          err, TENON_INVALID_ARGUMENT, "batch_norm_inference",
          "expected x [batch, channels, ...] and one number per channel, got shapes %s and %s",
          shape_text(*x.get()).c_str(), shape_text(*parameter->get()).c_str());
  // The difference comes first: x * scale - mean * scale would cancel where the mean is large, and
  // be NaN where the scale is infinite.
  Tensor scale = ops::rsqrt(scope, ops::add(scope, var, float_of(args[5])));
  if (weight) scale = ops::multiply(scope, scale, weight);
  x = ops::subtract(scope, x, ops::channel_view(scope, mean, x->ndim));
  return finish(scope, outs, scale_channels(scope, x, scale, bias));
}

TENON_DECOMPOSE(layer_norm) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), weight = operand(scope, args[1]),
         bias = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  Tensor out = normalized(scope, x, last_axes(x, int_of(args[3])), float_of(args[4])).x;
  if (weight) out = ops::multiply(scope, out, weight);
  if (bias) out = ops::add(scope, out, bias);
  return finish(scope, outs, out);
}

TENON_DECOMPOSE(layer_norm_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), x = operand(scope, args[1]),
         weight = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  int64_t count = int_of(args[3]);
  Shape axes = last_axes(x, count), others = first_axes(x, count);
  Normalized n = normalized(scope, x, axes, float_of(args[4]));
  Tensor dweight = ops::sum(scope, ops::multiply(scope, grad_out, n.x), others);
  Tensor dbias = ops::sum(scope, grad_out, others);
  Tensor grad = weight ? ops::multiply(scope, grad_out, weight) : grad_out;
  return finish(scope, outs, through_normalization(scope, grad, n, axes), dweight, dbias);
}

// layer_norm over the elements of each group.
TENON_DECOMPOSE(group_norm) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), weight = operand(scope, args[2]),
         bias = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  int64_t groups = int_of(args[1]);
  if (x->ndim < 2 || groups < 1 || x->shape[1] % groups != 0)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "group_norm",
        "expected x [batch, channels, ...] and groups that divide the channels, got shape %s and "
        "%lld groups",
        shape_text(*x.get()).c_str(), ll(groups));
  Shape shape = sizes_of(x);
  int64_t members = product(Ints(shape).subspan(1)) / groups;
  Tensor grouped = ops::reshape(scope, x, {shape[0], groups, members});
  Tensor out = ops::layer_norm(scope, grouped, nullptr, nullptr, 1, float_of(args[4]));
  return finish(scope, outs, scale_channels(scope, ops::reshape(scope, out, shape), weight, bias));
}

TENON_DECOMPOSE(spectral_norm) {
  const char* op = "spectral_norm";
  Scope scope(err);
  Tensor weight = operand(scope, args[0]), u = operand(scope, args[1]), v = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis(op, int_of(args[3]), weight->ndim, &axis, err));
  const int64_t iterations = int_of(args[4]), rows = weight->shape[axis];
  if (iterations < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected iterations of at least 0, got %lld", ll(iterations));
  int64_t columns = 1;
  std::vector<int64_t> order{axis};
  for (int32_t i = 0; i < weight->ndim; ++i) {
    if (i == axis) continue;
    order.push_back(i);
    columns *= weight->shape[i];
  }
  if (u->ndim != 1 || u->shape[0] != rows || v->ndim != 1 || v->shape[0] != columns)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected u [%lld] and v [%lld] for a weight of shape %s, got shapes %s and %s", ll(rows),
        ll(columns), shape_text(*weight.get()).c_str(), shape_text(*u.get()).c_str(),
        shape_text(*v.get()).c_str());
  Tensor matrix = ops::reshape(scope, ops::permute(scope, weight, order), {rows, columns});
  Tensor fixed = ops::stop_gradient(scope, matrix);
  u = ops::stop_gradient(scope, u);
  v = ops::stop_gradient(scope, v);
  const double eps = float_of(args[5]);
  for (int64_t i = 0; i < iterations && scope.ok(); ++i) {
    v = ops::normalize(scope, ops::matmul(scope, ops::transpose(scope, fixed), u), 2.0, 0, eps);
    u = ops::normalize(scope, ops::matmul(scope, fixed, v), 2.0, 0, eps);
  }
  Tensor sigma = ops::dot(scope, u, ops::matmul(scope, matrix, v));
  Tensor out = ops::divide(scope, weight, sigma);
  if (iterations > 0) return finish(scope, outs, out, u, v);
  return finish(scope, outs, out, ops::clone(scope, u), ops::clone(scope, v));
}

}  // namespace tenon::standard_ops
