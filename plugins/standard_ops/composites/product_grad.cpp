// SPDX-License-Identifier: Apache-2.0
// What gradients of products are made of. There is no division by an element: these are products
// and sums alone, so that gradients of any order are right where elements are zero.
#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// Rounding at each level would cost reduced floats their digits.
int32_t work_dtype(int32_t dtype) {
  return dtype >= TENON_DTYPE_F8E4M3 && dtype < TENON_DTYPE_F32 ? TENON_DTYPE_F32 : dtype;
}

// [rows, n] with one more column of `value` if n is odd, as [rows, pairs, 2].
Tensor in_pairs(Scope& scope, Tensor x, double value) {
  if (!scope.ok()) return {};
  const int64_t rows = x->shape[0], pairs = (x->shape[1] + 1) / 2;
  if (x->shape[1] % 2) x = ops::pad_constant(scope, x, {0, 0, 0, 1}, value);
  return ops::reshape(scope, x, {rows, pairs, 2});
}

// The elements of two [rows, pairs] by turns, the first n of each row.
Tensor interleaved(Scope& scope, const Tensor& even, const Tensor& odd, int64_t n) {
  if (!scope.ok()) return {};
  Tensor both = ops::reshape(scope, ops::stack(scope, {even, odd}, 2), {even->shape[0], -1});
  return ops::narrow(scope, both, 1, 0, n);
}

// Of x [rows, n]: for each element the product of all others in its row. The others of an element
// are its neighbour in a pair and the others of that pair among all pairs.
Tensor others(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const int64_t n = x->shape[1];
  if (n == 1) return ops::ones_like(scope, x);
  Tensor pairs = in_pairs(scope, x, 1);
  Tensor even = ops::select(scope, pairs, 2, 0), odd = ops::select(scope, pairs, 2, 1);
  if (n == 2) return interleaved(scope, odd, even, n);
  Tensor outside = others(scope, ops::multiply(scope, even, odd));
  return interleaved(scope, ops::multiply(scope, outside, odd), ops::multiply(scope, outside, even),
                     n);
}

// The solution of y[i] = value[i] + factor[i] * y[i + 1], [rows, n], where y[n] = 0. Two steps are
// one of the same form, from each second element to the next.
Tensor recurrence(Scope& scope, const Tensor& factor, const Tensor& value) {
  if (!scope.ok()) return {};
  const int64_t n = value->shape[1];
  if (n == 1) return value;
  Tensor factors = in_pairs(scope, factor, 0), values = in_pairs(scope, value, 0);
  Tensor factor0 = ops::select(scope, factors, 2, 0), factor1 = ops::select(scope, factors, 2, 1);
  Tensor value0 = ops::select(scope, values, 2, 0), value1 = ops::select(scope, values, 2, 1);
  Tensor even = recurrence(scope, ops::multiply(scope, factor0, factor1),
                           ops::add(scope, value0, ops::multiply(scope, factor0, value1)));
  Tensor next = ops::pad_constant(scope, even, {0, 0, -1, 1});
  Tensor odd = ops::add(scope, value1, ops::multiply(scope, factor1, next));
  return interleaved(scope, even, odd, n);
}

// x with `axes` last and all of them one, and back.
class Rows {
 public:
  Rows(const Tensor& x, uint32_t mask) : shape_(sizes_of(x)) {
    for (int32_t i = 0; i < x->ndim; ++i)
      if (!(mask >> i & 1)) order_.push_back(i);
    for (int32_t i = 0; i < x->ndim; ++i) {
      if (!(mask >> i & 1)) continue;
      order_.push_back(i);
      length_ *= x->shape[i];
    }
  }
  Tensor split(Scope& scope, const Tensor& x) const {
    return ops::reshape(scope, ops::permute(scope, x, order_), {x->numel / length_, length_});
  }
  Tensor joined(Scope& scope, const Tensor& rows) const {
    Shape moved, back(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      moved.push_back(shape_[static_cast<size_t>(order_[i])]);
      back[static_cast<size_t>(order_[i])] = static_cast<int64_t>(i);
    }
    return ops::permute(scope, ops::reshape(scope, rows, moved), back);
  }

 private:
  Shape shape_, order_;
  int64_t length_ = 1;
};

}  // namespace

TENON_DECOMPOSE(prod_of_others) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (x->numel == 0) return finish(scope, outs, ops::clone(scope, x));
  uint32_t mask;
  TENON_TRY(resolve_reduced("prod", args[1], x->ndim, &mask, err));
  const Rows rows(x, mask);
  Tensor wide = as_dtype(scope, x, work_dtype(x->dtype));
  Tensor result = rows.joined(scope, others(scope, rows.split(scope, wide)));
  return finish(scope, outs, as_dtype(scope, result, x->dtype));
}

// With p[i] the product of all before i, the gradient of x[i] is p[i] * y[i], where
// y[i] = dout[i] + x[i + 1] * y[i + 1].
TENON_DECOMPOSE(cumprod_grad) {
  Scope scope(err);
  Tensor dout = operand(scope, args[0]), x = operand(scope, args[1]), out = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  if (x->numel == 0 || x->ndim == 0) return finish(scope, outs, ops::clone(scope, dout));
  int32_t axis;
  TENON_TRY(resolve_axis("cumprod", int_of(args[3]), x->ndim, &axis, err));
  const Rows rows(x, 1u << axis);
  const int32_t wide = work_dtype(x->dtype);
  const auto split = [&](const Tensor& tensor) {
    return rows.split(scope, as_dtype(scope, tensor, wide));
  };
  Tensor before = ops::pad_constant(scope, split(out), {0, 0, 1, -1}, 1.0);
  Tensor after = ops::pad_constant(scope, split(x), {0, 0, -1, 1});
  Tensor result = ops::multiply(scope, before, recurrence(scope, after, split(dout)));
  return finish(scope, outs, as_dtype(scope, rows.joined(scope, result), x->dtype));
}

}  // namespace tenon::standard_ops
