// SPDX-License-Identifier: Apache-2.0
// Losses of classes with margins, of trees of classes, and of classes along any axis.
#include <algorithm>
#include <bit>
#include <limits>

#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status expect_shapes(const char* op, bool right, const char* wanted, const Tensor& x,
                           const Tensor& target, tenon_err* err) {
  if (right) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %s, got shapes %s and %s", wanted,
                      shape_text(*x.get()).c_str(), shape_text(*target.get()).c_str());
}

tenon_status expect_classes(const char* op, Tensor& target, int64_t count, tenon_err* err) {
  return expect_between(TENON_OUT_OF_RANGE, op, "classes", target, 0,
                        static_cast<double>(count - 1), err);
}

}  // namespace

TENON_DECOMPOSE(softmax_with_cross_entropy) {
  const char* op = "softmax_with_cross_entropy";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (!(shapes::bit(x->dtype) & shapes::kFloats))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected x of a floating dtype, got %s",
                        host->dtype_name(x->dtype));
  int32_t axis;
  TENON_TRY(resolve_axis(op, int_of(args[4]), x->ndim, &axis, err));
  Tensor logs = ops::log_softmax(scope, x, axis);
  if (bool_of(args[2])) {
    TENON_TRY(expect_shapes(op, sizes_of(x) == sizes_of(target), "probabilities in the shape of x",
                            x, target, err));
    return finish(
        scope, outs,
        ops::negative(scope, ops::sum(scope, ops::multiply(scope, target, logs), {axis}, true)));
  }
  TENON_TRY(expect_integers(op, "target", target, err));
  target = as_int64(scope, target);
  if (scope.ok() && target->ndim == x->ndim - 1) target = ops::unsqueeze(scope, target, {axis});
  if (!scope.ok()) return scope.status();
  Shape wanted = sizes_of(x);
  wanted[static_cast<size_t>(axis)] = 1;
  TENON_TRY(expect_shapes(op, sizes_of(target) == wanted,
                          "classes in the shape of x, with one along axis or without it", x, target,
                          err));
  Tensor counts = ops::not_equal(scope, target, int_of(args[3]));
  Tensor safe = ops::where(scope, counts, target, 0);
  TENON_TRY(expect_classes(op, safe, x->shape[axis], err));
  Tensor loss = ops::negative(scope, ops::gather(scope, logs, safe, axis));
  return finish(scope, outs, ops::where(scope, counts, loss, zero_of(scope, x)));
}

TENON_DECOMPOSE(npair_loss) {
  const char* op = "npair_loss";
  Scope scope(err);
  Tensor anchor = operand(scope, args[0]), positive = operand(scope, args[1]),
         target = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_shapes(op, anchor->ndim == 2 && sizes_of(anchor) == sizes_of(positive),
                          "anchor and positive [N, M] of one shape", anchor, positive, err));
  TENON_TRY(expect_shapes(op, target->ndim == 1 && target->shape[0] == anchor->shape[0],
                          "target [N] beside anchor [N, M]", anchor, target, err));
  Tensor same = ops::cast(
      scope,
      ops::equal(scope, ops::unsqueeze(scope, target, {1}), ops::unsqueeze(scope, target, {0})),
      anchor->dtype);
  Tensor wanted = ops::divide(scope, same, ops::sum(scope, same, {1}, true));
  const auto mean_square = [&](const Tensor& x) {
    return ops::mean(scope, ops::sum(scope, ops::square(scope, x), {1}));
  };
  Tensor squares = ops::add(scope, mean_square(anchor), mean_square(positive));
  Tensor likely =
      ops::log_softmax(scope, ops::matmul(scope, anchor, ops::transpose(scope, positive)), 1);
  Tensor entropy = ops::mean(
      scope, ops::sum(scope, ops::negative(scope, ops::multiply(scope, wanted, likely)), {1}));
  return finish(scope, outs,
                ops::add(scope, entropy, ops::multiply(scope, squares, 0.25 * float_of(args[3]))));
}

TENON_DECOMPOSE(multi_margin_loss) {
  const char* op = "multi_margin_loss";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]),
         weight = operand(scope, args[4]);
  if (!scope.ok()) return scope.status();
  if (args[1].tag != TENON_VALUE_TENSOR) target = ops::to_device(scope, target, x->device);
  if (!scope.ok()) return scope.status();
  const int64_t power = int_of(args[2]);
  if (power != 1 && power != 2)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected p 1 or 2, got %lld", ll(power));
  TENON_TRY(expect_integers(op, "target", target, err));
  if (x->ndim == 0) x = ops::reshape(scope, x, {1});  // the score of the only class
  if (!scope.ok()) return scope.status();
  const bool alone = x->ndim == 1;
  TENON_TRY(
      expect_shapes(op,
                    alone ? target->numel == 1
                          : x->ndim == 2 && target->ndim == 1 && target->shape[0] == x->shape[0],
                    "x [N, C] and target [N], or x [C] and one target", x, target, err));
  const int64_t classes = x->shape[x->ndim - 1];
  if (weight && (weight->ndim != 1 || weight->shape[0] != classes))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a weight for each of %lld classes, got shape %s", ll(classes),
                        shape_text(*weight.get()).c_str());
  Tensor rows = alone ? ops::unsqueeze(scope, x, {0}) : x;
  Tensor right = ops::reshape(scope, as_int64(scope, target), {-1, 1});
  TENON_TRY(expect_classes(op, right, classes, err));
  Tensor margin = ops::subtract(scope, ops::add(scope, rows, float_of(args[3])),
                                ops::gather(scope, rows, right, 1));
  Tensor loss = ops::relu(scope, margin);
  if (power == 2) loss = ops::square(scope, loss);
  if (weight)
    loss = ops::multiply(
        scope, loss,
        ops::unsqueeze(scope, ops::index_select(scope, weight, ops::squeeze(scope, right, {1}), 0),
                       {1}));
  Tensor is_right = ops::equal(scope, numbers_to(scope, classes, right), right);
  loss = ops::where(scope, is_right, zero_of(scope, loss), loss);
  loss = ops::divide(scope, ops::sum(scope, loss, {1}), static_cast<double>(classes));
  if (alone) loss = ops::squeeze(scope, loss, {0});
  return finish(scope, outs, ops::reduce_loss(scope, loss, text_of(args[5])));
}

TENON_DECOMPOSE(multilabel_margin_loss) {
  const char* op = "multilabel_margin_loss";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_integers(op, "target", target, err));
  if (x->ndim == 0 && target->ndim == 0) {  // the only class
    x = ops::reshape(scope, x, {1});
    target = ops::reshape(scope, target, {1});
    if (!scope.ok()) return scope.status();
  }
  const bool alone = x->ndim == 1;
  TENON_TRY(expect_shapes(op, (alone || x->ndim == 2) && sizes_of(x) == sizes_of(target),
                          "x [N, C] or [C], and target of its shape", x, target, err));
  Tensor rows = alone ? ops::unsqueeze(scope, x, {0}) : x;
  target = as_int64(scope, alone ? ops::unsqueeze(scope, target, {0}) : target);
  if (!scope.ok()) return scope.status();
  const int64_t classes = rows->shape[1];
  // Entries after the first negative one do not count.
  Tensor counts = ops::cumprod(
      scope, ops::cast(scope, ops::greater_equal(scope, target, 0), TENON_DTYPE_I64), 1);
  Tensor index = ops::multiply(scope, target, counts);
  TENON_TRY(expect_classes(op, index, classes, err));
  Tensor listed = ops::scatter_add(scope, ops::zeros_like(scope, index), index, counts, 1);
  Tensor wrong = ops::equal(scope, listed, 0);
  Tensor right = ops::gather(scope, rows, index, 1);
  Tensor margins = ops::subtract(scope, ops::add(scope, ops::unsqueeze(scope, rows, {1}), 1.0),
                                 ops::unsqueeze(scope, right, {2}));
  Tensor both =
      ops::logical_and(scope, ops::unsqueeze(scope, ops::not_equal(scope, counts, 0), {2}),
                       ops::unsqueeze(scope, wrong, {1}));
  Tensor loss = ops::where(scope, both, ops::relu(scope, margins), zero_of(scope, rows));
  loss = ops::divide(scope, ops::sum(scope, loss, {1, 2}), static_cast<double>(classes));
  if (alone) loss = ops::squeeze(scope, loss, {0});
  return finish(scope, outs, ops::reduce_loss(scope, loss, text_of(args[2])));
}

TENON_DECOMPOSE(hsigmoid_loss) {
  const char* op = "hsigmoid_loss";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]),
         weight = operand(scope, args[3]), bias = operand(scope, args[4]),
         path = operand(scope, args[5]), code = operand(scope, args[6]);
  if (!scope.ok()) return scope.status();
  const int64_t classes = int_of(args[2]);
  if (classes < 2)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected at least 2 classes, got %lld",
                        ll(classes));
  if (static_cast<bool>(path) != static_cast<bool>(code))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected path and code together, or neither");
  TENON_TRY(expect_integers(op, "target", target, err));
  TENON_TRY(expect_shapes(op, x->ndim == 2 && target->numel == x->shape[0],
                          "x [N, D] and N classes", x, target, err));
  if (weight->ndim != 2 || weight->shape[1] != x->shape[1])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected weight [nodes, %lld], got shape %s", ll(x->shape[1]),
                        shape_text(*weight.get()).c_str());
  const int64_t nodes = weight->shape[0];
  if (bias && bias->numel != nodes)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a bias for each of %lld nodes, got shape %s", ll(nodes),
                        shape_text(*bias.get()).c_str());
  Tensor node, right;
  if (path) {
    TENON_TRY(expect_integers(op, "path", path, err));
    TENON_TRY(expect_shapes(
        op, path->ndim == 2 && path->shape[0] == x->shape[0] && sizes_of(path) == sizes_of(code),
        "path and code [N, depth]", path, code, err));
    node = as_int64(scope, path);
    right = ops::cast(scope, code, x->dtype);
  } else {
    Tensor leaf = ops::reshape(scope, as_int64(scope, target), {-1, 1});
    TENON_TRY(expect_classes(op, leaf, classes, err));
    const int64_t depth = std::bit_width(static_cast<uint64_t>(2 * classes - 1)) - 1;
    Tensor bits = numbers_to(scope, depth, leaf), codes = ops::add(scope, leaf, classes);
    node =
        ops::subtract(scope, ops::bitwise_right_shift(scope, codes, ops::add(scope, bits, 1)), 1);
    right = ops::bitwise_and(scope, ops::bitwise_right_shift(scope, codes, bits), 1);
    right = ops::cast(scope, right, x->dtype);
  }
  if (!scope.ok()) return scope.status();
  Tensor on_path = ops::greater_equal(scope, node, 0);
  node = ops::where(scope, on_path, node, 0);
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "nodes", node, 0, static_cast<double>(nodes - 1),
                           err));
  Tensor flat = ops::reshape(scope, node, {-1});
  Tensor rows = ops::index_select(scope, weight, flat, 0);
  if (!scope.ok()) return scope.status();
  rows = ops::reshape(scope, rows, {node->shape[0], node->shape[1], x->shape[1]});
  Tensor scores = ops::sum(scope, ops::multiply(scope, rows, ops::unsqueeze(scope, x, {1})), {-1});
  if (bias) {
    Tensor at_nodes = ops::index_select(scope, ops::reshape(scope, bias, {-1}), flat, 0);
    scores = ops::add(scope, scores, ops::reshape(scope, at_nodes, sizes_of(node)));
  }
  // The two terms are not negative, so that nothing cancels where a node is certain.
  Tensor left = ops::add(scope, ops::negative(scope, right), 1.0);
  Tensor loss = ops::add(
      scope, ops::multiply(scope, right, ops::softplus(scope, ops::negative(scope, scores))),
      ops::multiply(scope, left, ops::softplus(scope, scores)));
  loss = ops::where(scope, on_path, loss, zero_of(scope, loss));
  return finish(scope, outs, ops::sum(scope, loss, {1}, true));
}

TENON_DECOMPOSE(margin_cross_entropy) {
  const char* op = "margin_cross_entropy";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const double margin1 = float_of(args[2]), margin2 = float_of(args[3]),
               margin3 = float_of(args[4]), scale = float_of(args[5]);
  TENON_TRY(expect_integers(op, "target", target, err));
  TENON_TRY(expect_shapes(op, x->ndim == 2 && target->numel == x->shape[0],
                          "x [N, classes] and N targets", x, target, err));
  target = ops::reshape(scope, as_int64(scope, target), {-1});
  TENON_TRY(expect_classes(op, target, x->shape[1], err));
  Tensor harder = x;
  if (margin1 != 1.0 || margin2 != 0.0) {
    const double step = x->dtype == TENON_DTYPE_F64   ? std::numeric_limits<double>::epsilon()
                        : x->dtype == TENON_DTYPE_F32 ? 0x1p-23
                                                      : 0x1p-7;
    // Next to 1 and -1 the angle is a constant, so that no infinite derivative is multiplied.
    Tensor inside = ops::less_equal(scope, ops::abs(scope, x), 1 - step);
    Tensor edge = ops::acos(scope, ops::clip(scope, ops::stop_gradient(scope, x), -1.0, 1.0));
    Tensor angle = ops::where(
        scope, inside, ops::acos(scope, ops::where(scope, inside, x, zero_of(scope, x))), edge);
    harder = ops::cos(scope, ops::add(scope, ops::multiply(scope, angle, margin1), margin2));
  }
  Tensor is_right =
      ops::equal(scope, numbers_to(scope, x->shape[1], target), ops::unsqueeze(scope, target, {1}));
  Tensor logits = ops::multiply(
      scope, ops::where(scope, is_right, ops::subtract(scope, harder, margin3), x), scale);
  Tensor loss = ops::cross_entropy(scope, logits, target, nullptr, -100, text_of(args[6]));
  return finish(scope, outs, loss, ops::softmax(scope, logits, -1));
}

}  // namespace tenon::standard_ops
