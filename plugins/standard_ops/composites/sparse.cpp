// SPDX-License-Identifier: Apache-2.0
// Products of two CSR matrices, for devices that have no kernel for them: all products of two elements, sorted by where
// they go.
#include "composites/compose.hpp"

#include <algorithm>

namespace tenon::standard_ops {
namespace {

int64_t last_of(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return 0;
  Tensor last = ops::narrow(scope, x, 0, x->numel - 1, 1);
  Tensor here = ops::to_device(scope, ops::contiguous(scope, last), host->device_host());
  return scope.ok() ? *static_cast<const int64_t*>(here->data) : 0;
}

// For each product of two elements where it goes, as row * columns + column, and the positions of the two.
struct Products {
  Tensor key, left, right;
};
Products products_of(Scope& scope, const tenon_value* x, const tenon_value* y, int64_t columns) {
  Tensor indices = as_int64(scope, operand(scope, x[1]));
  Tensor offsets = as_int64(scope, operand(scope, y[0]));
  if (!scope.ok()) return {};
  const int64_t stored = indices->numel;
  Tensor begin = ops::index_select(scope, offsets, indices, 0);
  Tensor end = ops::index_select(scope, offsets, ops::add(scope, indices, 1), 0);
  Tensor lengths = ops::subtract(scope, end, begin);
  Tensor ends = ops::cumsum(scope, lengths, 0);
  const int64_t total = stored > 0 ? last_of(scope, ends) : 0;
  Tensor number = numbers_to(scope, total, indices);
  Products found;
  found.left = ops::searchsorted(scope, ends, number, true);
  Tensor before = ops::subtract(scope, ends, lengths);
  Tensor within = ops::subtract(scope, number, ops::index_select(scope, before, found.left, 0));
  found.right = ops::add(scope, ops::index_select(scope, begin, found.left, 0), within);
  Tensor rows = ops::csr_rows(scope, operand(scope, x[0]), stored);
  Tensor row = ops::index_select(scope, rows, found.left, 0);
  Tensor column = ops::index_select(scope, as_int64(scope, operand(scope, y[1])), found.right, 0);
  found.key = ops::add(scope, ops::multiply(scope, row, columns), column);
  return found;
}

// 1 where a sorted key differs from the one before it.
Tensor begins_of(Scope& scope, const Tensor& sorted) {
  if (!scope.ok()) return {};
  const int64_t count = sorted->numel;
  Tensor differs = ops::not_equal(scope, ops::narrow(scope, sorted, 0, 1, count - 1),
                                  ops::narrow(scope, sorted, 0, 0, count - 1));
  const int64_t one[] = {1};
  Tensor first = ops::full(scope, list_of(one), true, TENON_DTYPE_BOOL, sorted->device);
  return ops::concat(scope, {first, differs}, 0);
}

}  // namespace

TENON_DECOMPOSE(csr_product_structure) {
  Scope scope(err);
  Tensor indptr = operand(scope, args[0]);
  const int64_t columns = int_of(args[4]);
  Products products = products_of(scope, args, args + 2, columns);
  if (!scope.ok()) return scope.status();
  Tensor keys = products.key;
  if (keys->numel > 0) {
    Tensor sorted = ops::sort(scope, keys);
    keys = ops::compress(scope, sorted, begins_of(scope, sorted));
  }
  Tensor bounds = ops::multiply(scope, numbers_to(scope, indptr->numel, indptr), columns);
  return finish(scope, outs, ops::searchsorted(scope, keys, bounds),
                ops::remainder(scope, keys, std::max<int64_t>(columns, 1)));
}

TENON_DECOMPOSE(csr_masked_product) {
  Scope scope(err);
  Tensor indptr = operand(scope, args[0]), indices = as_int64(scope, operand(scope, args[1]));
  Tensor x = operand(scope, args[4]), y = operand(scope, args[7]);
  const int64_t columns = int_of(args[8]);
  const tenon_value right[] = {args[5], args[6]};
  Products products = products_of(scope, args + 2, right, columns);
  if (!scope.ok()) return scope.status();
  if (products.key->numel == 0 || indices->numel == 0)
    return finish(scope, outs, full_with(scope, x, shape_of(*indices.get()), 0));
  Tensor order = ops::argsort(scope, products.key, 0);
  Tensor sorted = ops::index_select(scope, products.key, order, 0);
  Tensor begins = begins_of(scope, sorted);
  Tensor groups =
      ops::subtract(scope, ops::cumsum(scope, ops::cast(scope, begins, TENON_DTYPE_I64), 0), 1);
  const int64_t count = 1 + last_of(scope, groups);
  Tensor terms = ops::multiply(
      scope, ops::index_select(scope, x, ops::index_select(scope, products.left, order, 0), 0),
      ops::index_select(scope, y, ops::index_select(scope, products.right, order, 0), 0));
  Tensor sums = ops::segment_add(scope, ops::unsqueeze(scope, terms, {1}), groups, count);
  Tensor distinct = ops::compress(scope, sorted, begins);
  Tensor rows = ops::csr_rows(scope, indptr, indices->numel);
  Tensor wanted = ops::add(scope, ops::multiply(scope, rows, columns), indices);
  Tensor at = ops::minimum(scope, ops::searchsorted(scope, distinct, wanted), count - 1);
  Tensor is_there = ops::equal(scope, ops::index_select(scope, distinct, at, 0), wanted);
  Tensor found = ops::select(scope, ops::index_select(scope, sums, at, 0), 1, 0);
  return finish(scope, outs, ops::where(scope, is_there, found, 0));
}

TENON_DECOMPOSE(csr_transpose) {
  Scope scope(err);
  Tensor indptr = operand(scope, args[0]), indices = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int64_t stored = indices->numel, rows = indptr->numel - 1;
  const bool narrow = indices->dtype == TENON_DTYPE_I32 && stored <= INT32_MAX && rows <= INT32_MAX;
  const int32_t dtype = narrow ? TENON_DTYPE_I32 : TENON_DTYPE_I64;
  Tensor order = ops::csr_order(scope, indices, int_of(args[2]));
  Tensor sorted = as_int64(scope, ops::index_select(scope, indices, order, 0));
  Tensor begins = ops::searchsorted(scope, sorted, numbers_to(scope, int_of(args[2]) + 1, indices));
  Tensor row = ops::index_select(scope, ops::csr_rows(scope, indptr, stored), order, 0);
  return finish(scope, outs, begins, ops::cast(scope, row, dtype), ops::cast(scope, order, dtype));
}

}  // namespace tenon::standard_ops
