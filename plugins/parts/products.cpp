// SPDX-License-Identifier: Apache-2.0
// Products of matrices of which one or both are sparse, and sums along axes, which are products with ones.
#include "rules.hpp"

#include <tenon/text.hpp>

namespace tenon::parts {
namespace {

Tensor multiplied(Scope& scope, const Composed& a, const Tensor& y) {
  return run(scope, op::csr_matmul,
             {box(a.parts[kIndptr]), box(a.parts[kIndices]), box(a.parts[kStored]), box(y)});
}
Tensor multiplied_transposed(Scope& scope, const Composed& a, const Tensor& y, int64_t columns) {
  return run(scope, op::csr_matmul_transposed,
             {box(a.parts[kIndptr]), box(a.parts[kIndices]), box(a.parts[kStored]), box(y),
              boxed(columns)});
}
Tensor column(Scope& scope, const Tensor& x) {
  return run(scope, op::unsqueeze, {box(x), boxed(int64_t{1})});
}
Tensor without_column(Scope& scope, const Tensor& x) {
  return run(scope, op::select, {box(x), boxed(int64_t{1}), boxed(int64_t{0})});
}
Tensor transposed(Scope& scope, const Tensor& x) { return run(scope, op::transpose, {box(x)}); }

// Blocks times the rows of y that they meet, added up by rows of blocks.
Tensor blocks_times(Scope& scope, const Tensor& x, const Tensor& y) {
  if (!scope.ok()) return {};
  const Composed& a = *composed_of(x.get());
  const int64_t rows = block_size(a, 0), columns = block_size(a, 1), features = y->shape[1];
  const Tensor parts = reshaped(scope, y, {x->shape[1] / columns, columns, features});
  const Tensor pairs = pairs_of(scope, x);
  if (!scope.ok()) return {};
  const Composed& coo = *composed_of(pairs.get());
  const Tensor row = checked_along(scope, coo, 0, pairs->shape[0]);
  const Tensor met = select_rows(scope, parts, checked_along(scope, coo, 1, pairs->shape[1]));
  const Tensor products = run(scope, op::matmul, {box(a.values()), box(met)});
  const Tensor sums = run(scope, op::segment_add,
                          {box(reshaped(scope, products, {met->shape[0], rows * features})),
                           box(row), boxed(pairs->shape[0])});
  return reshaped(scope, sums, {x->shape[0], features});
}

// A sparse matrix of any kind times a dense one, and its transpose times a dense one.
Tensor times(Scope& scope, const Tensor& x, const Tensor& y) {
  if (!scope.ok()) return {};
  const Composed& a = *composed_of(x.get());
  if (a.kind == &kCsc) return multiplied_transposed(scope, a, y, x->shape[0]);
  if (a.kind == &kBsr) return blocks_times(scope, x, y);
  const Tensor csr = as_csr(scope, x);
  return scope.ok() ? multiplied(scope, *composed_of(csr.get()), y) : csr;
}
Tensor transpose_times(Scope& scope, const Tensor& x, const Tensor& y) {
  if (!scope.ok()) return {};
  const Composed& a = *composed_of(x.get());
  if (a.kind == &kCsc) return multiplied(scope, a, y);
  const Tensor csr = as_csr(scope, x);
  return scope.ok() ? multiplied_transposed(scope, *composed_of(csr.get()), y, x->shape[1]) : csr;
}

// Small floats are added up in float32 and rounded once.
Tensor sparse_product(Scope& scope, const Tensor& x, const Tensor& y) {
  const Tensor left = as_csr(scope, x), right = as_csr(scope, y);
  if (!scope.ok()) return {};
  const Composed &a = *composed_of(left.get()), &b = *composed_of(right.get());
  const int64_t columns = y->shape[1];
  const int32_t dtype = host->dtype_promote(a.values()->dtype, b.values()->dtype);
  const bool is_small = dtype >= TENON_DTYPE_F8E4M3 && dtype < TENON_DTYPE_F32;
  const auto values_of = [&](const Composed& matrix) {
    return is_small ? cast_to(scope, matrix.values(), TENON_DTYPE_F32) : matrix.values();
  };
  const Tensor of_left = values_of(a), of_right = values_of(b);
  tenon_value args[] = {box(a.parts[kIndptr]), box(a.parts[kIndices]), box(of_left),
                        box(b.parts[kIndptr]), box(b.parts[kIndices]), box(of_right),
                        boxed(columns)};
  tenon_value outs[] = {kNoValue, kNoValue, kNoValue};
  if (!scope.ok() || !op::csr_product.run(scope, args, 7, outs, 3)) return {};
  const Tensor indptr = Tensor::adopt(as_tensor(outs[0])),
               indices = Tensor::adopt(as_tensor(outs[1])),
               values = Tensor::adopt(as_tensor(outs[2]));
  return compose(scope, &kCsr, {x->shape[0], columns},
                 {indptr, indices, is_small ? cast_to(scope, values, dtype) : values});
}

tenon_status fail_sizes(const Call& call) {
  return fail(call.err, TENON_INVALID_ARGUMENT,
              "[matmul] expected as many columns on the left as rows on the right, got shapes " +
                  shape_text(*as_tensor(call.args[0])) + " and " +
                  shape_text(*as_tensor(call.args[1])));
}

Result sum(Scope& scope, const Call& call) {
  const Tensor x = call.tensor(0);
  const bool keeps = call.nargs > 2 && call.args[2].v.i;
  if (!call.is_given(1)) {
    if (keeps) return declined();
    return {run(scope, op::sum, {box(call.composed(0)->values())})};
  }
  if (call.args[1].aux != 1) return declined();
  int64_t axis = static_cast<const int64_t*>(call.args[1].v.p)[0];
  if (axis < 0) axis += 2;
  if (axis != 0 && axis != 1) return declined();
  const int32_t dtype = accumulated(x->dtype);
  const Tensor wide =
      dtype == x->dtype
          ? x
          : with_values(scope, x.get(), cast_to(scope, call.composed(0)->values(), dtype));
  const Tensor ones = filled(scope, {x->shape[axis], 1}, 1, dtype, x->device);
  const Tensor sums = axis == 1 ? times(scope, wide, ones) : transpose_times(scope, wide, ones);
  if (!keeps) return {without_column(scope, sums)};
  return {axis == 1 ? sums : transposed(scope, sums)};
}

Result mean(Scope& scope, const Call& call) {
  if (call.composed(0)->values()->dtype < TENON_DTYPE_F8E4M3) return declined();
  const Result total = sum(scope, call);
  if (total.declines || !scope.ok()) return total;
  const tenon_tensor* whole = as_tensor(call.args[0]);
  int64_t count = whole->numel;
  if (call.is_given(1)) {
    const int64_t axis = static_cast<const int64_t*>(call.args[1].v.p)[0];
    count = whole->shape[axis < 0 ? axis + 2 : axis];
  }
  return {run(scope, op::divide, {box(total.tensor), boxed(count)})};
}

Result norm(Scope& scope, const Call& call) {
  if (call.is_given(2) || (call.nargs > 3 && call.args[3].v.i) || !(call.args[1].v.f > 0))
    return declined();
  const Tensor sums = distinct(scope, call.tensor(0));
  if (!scope.ok()) return {};
  const Tensor flat = reshaped(scope, composed_of(sums.get())->values(), {-1});
  return {run(scope, op::norm, {box(flat), call.args[1]})};
}

// A union: what both have is added up by sorting. Beside a dense tensor, that with the stored elements added.
Result add(Scope& scope, const Call& call) {
  const Composed *x = call.composed(0), *y = call.composed(1);
  if (call.is_number(0) || call.is_number(1)) return declined();
  const Tensor left = x ? as_coo(scope, call.tensor(0)) : call.tensor(0);
  const Tensor right = y ? as_coo(scope, call.tensor(1)) : call.tensor(1);
  if (!scope.ok()) return {};
  const Tensor total =
      run(scope, call.name() == "add" ? op::add : op::subtract, {box(left), box(right)});
  if (!x || !y || !scope.ok()) return {total};
  const Kind* kind = x->kind == &kCsc && y->kind == &kCsc ? &kCsc : &kCsr;
  return {of_sorted_coo(scope, coalesced(scope, total), kind)};
}

constexpr NamedRule kRules[] = {
    {"matmul", matmul},   {"sum", sum},       {"mean", mean},
    {"norm", norm},       {"add", add},       {"subtract", add},
    {"reshape", reshape}, {"concat", concat}, {"zeros_like", zeros_like}};

}  // namespace

int32_t accumulated(int32_t dtype) {
  if (dtype >= TENON_DTYPE_F8E4M3) return dtype;
  const bool is_unsigned = std::string_view(host->dtype_name(dtype)).starts_with("uint");
  return is_unsigned ? int32_t{TENON_DTYPE_U64} : int32_t{TENON_DTYPE_I64};
}

Result matmul(Scope& scope, const Call& call) {
  const Composed *x = call.composed(0), *y = call.composed(1);
  const tenon_tensor *left = as_tensor(call.args[0]), *right = as_tensor(call.args[1]);
  if (!left || !right || left->ndim > 2 || right->ndim > 2 || left->ndim < 1 || right->ndim < 1)
    return declined();
  for (const Composed* one : {x, y})
    if (one && !is_compressed(one->kind) &&
        (one->kind != &kCoo || index_axes(*one) != 2 || one->values()->ndim != 1))
      return declined();
  if (left->shape[left->ndim - 1] != right->shape[0]) {
    scope.check(fail_sizes(call));
    return {};
  }
  if (x && y) {
    if (x->kind == &kCsc && y->kind == &kCsc)
      return {flipped(scope, sparse_product(scope, flipped(scope, call.tensor(1)),
                                            flipped(scope, call.tensor(0))))};
    const Tensor product = sparse_product(scope, call.tensor(0), call.tensor(1));
    return {x->kind == &kCoo && y->kind == &kCoo ? as_coo(scope, product) : product};
  }
  if (x) {
    const bool is_vector = right->ndim == 1;
    const Tensor whole = is_vector ? column(scope, call.tensor(1)) : call.tensor(1);
    const Tensor product = times(scope, call.tensor(0), whole);
    return {is_vector ? without_column(scope, product) : product};
  }
  // x @ A is the transpose of A.T @ x.T.
  const bool is_vector = left->ndim == 1;
  const Tensor whole =
      is_vector ? column(scope, call.tensor(0)) : transposed(scope, call.tensor(0));
  const Tensor product = transpose_times(scope, call.tensor(1), whole);
  return {is_vector ? without_column(scope, product) : transposed(scope, product)};
}

tenon_status call_compressed(const tenon_op* op, tenon_value* args, uint32_t nargs,
                             tenon_value* outs, uint32_t nouts, tenon_err* err) {
  const Call call{op, args, nargs, outs, nouts, err};
  const tenon_status status = run_rule(kRules, call);
  return status == TENON_LAYER_DECLINED ? run_rule(kViewRules, call) : status;
}

}  // namespace tenon::parts
