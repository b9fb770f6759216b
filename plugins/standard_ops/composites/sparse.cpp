// SPDX-License-Identifier: Apache-2.0
// Operators on the parts of sparse tensors, for devices that have no kernel for them. Products of two CSR matrices are all
// products of two elements, sorted by where they go.
#include "composites/compose.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace tenon::standard_ops {
namespace {

int64_t last_of(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return 0;
  Tensor last = ops::narrow(scope, x, 0, x->numel - 1, 1);
  Tensor here = ops::to_device(scope, ops::contiguous(scope, last), host->device_host());
  return scope.ok() ? *static_cast<const int64_t*>(here->data) : 0;
}

// Indices of an axis of `size` elements, none of which counts from the end. `what` they are, and `where`, are said in the error.
tenon_status expect_inside(Scope& scope, const Tensor& indices, int64_t size,
                           const std::string& what, const std::string& where, tenon_err* err) {
  if (!scope.ok()) return scope.status();
  Tensor outside = ops::logical_or(scope, ops::less(scope, indices, 0),
                                   ops::greater_equal(scope, indices, size));
  Tensor positions = ops::nonzero(scope, outside);
  if (!scope.ok()) return scope.status();
  if (positions->shape[0] == 0) return TENON_OK;
  const int64_t at =
      last_of(scope, ops::reshape(scope, ops::narrow(scope, positions, 0, 0, 1), {1}));
  const int64_t index = last_of(scope, ops::narrow(scope, indices, 0, at, 1));
  if (!scope.ok()) return scope.status();
  return fail(err, TENON_OUT_OF_RANGE,
              what + " from 0 to " + std::to_string(size - 1) + where + ", got " +
                  std::to_string(index) + " at position " + std::to_string(at));
}

tenon_status expect_columns(Scope& scope, const char* op, const Tensor& indices, int64_t columns,
                            tenon_err* err) {
  return expect_inside(scope, indices, columns, "[" + std::string(op) + "] expected columns", "",
                       err);
}

// Keys of elements are their positions in a dense tensor of `rows` times `columns` elements.
tenon_status expect_keys(const char* op, int64_t rows, int64_t columns, tenon_err* err) {
  if (columns < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected a count of at least 0, got %lld",
                        static_cast<long long>(columns));
  if (columns == 0 || rows <= std::numeric_limits<int64_t>::max() / columns) return TENON_OK;
  return shapes::fail(err, TENON_UNSUPPORTED, op,
                      "expected a shape of at most 2^63 - 1 elements where no kernel computes the "
                      "operator, got %lld times %lld; use a kernel's dtype, or divide the tensor",
                      static_cast<long long>(rows), static_cast<long long>(columns));
}

// Two matrices (indptr and indices of each) that can be multiplied, of which the second one has `columns` columns.
tenon_status expect_factors(Scope& scope, const char* op, const tenon_value* x,
                            const tenon_value* y, int64_t columns, tenon_err* err) {
  for (const tenon_value* part : {&x[0], &x[1], &y[0], &y[1]})
    TENON_TRY(expect_ndim(op, "each part of a matrix", tensor_of(*part), 1, "[n]", err));
  TENON_TRY(expect_keys(op, tensor_of(x[0]).numel, columns, err));
  Tensor of_x = operand(scope, x[1]), offsets = operand(scope, y[0]), of_y = operand(scope, y[1]);
  if (!scope.ok()) return scope.status();
  ops::csr_rows(scope, offsets, of_y->numel);  // It checks the offsets.
  TENON_TRY(expect_columns(scope, op, as_int64(scope, of_x), offsets->numel - 1, err));
  return expect_columns(scope, op, as_int64(scope, of_y), columns, err);
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

// Keys that are equal, sorted: the order of all keys, what is distinct, and which of these each sorted key is.
struct Groups {
  Tensor order, distinct, group;
};
Groups groups_of(Scope& scope, const Tensor& keys) {
  if (!scope.ok()) return {};
  if (keys->numel == 0) return {keys, keys, keys};
  Groups found;
  found.order = ops::argsort(scope, keys, 0);
  Tensor sorted = ops::index_select(scope, keys, found.order, 0);
  Tensor begins = begins_of(scope, sorted);
  found.group =
      ops::subtract(scope, ops::cumsum(scope, ops::cast(scope, begins, TENON_DTYPE_I64), 0), 1);
  found.distinct = ops::compress(scope, sorted, begins);
  return found;
}

// For each distinct key the sum of its products.
Tensor sums_of(Scope& scope, const Products& products, const Groups& groups, const Tensor& x,
               const Tensor& y) {
  if (!scope.ok()) return {};
  Tensor terms = ops::multiply(
      scope,
      ops::index_select(scope, x, ops::index_select(scope, products.left, groups.order, 0), 0),
      ops::index_select(scope, y, ops::index_select(scope, products.right, groups.order, 0), 0));
  Tensor sums = ops::segment_add(scope, ops::unsqueeze(scope, terms, {1}), groups.group,
                                 groups.distinct->numel);
  return ops::select(scope, sums, 1, 0);
}

// The row of each stored element, whose values are [stored, ...], and these as a matrix.
Tensor stored_matrix(Scope& scope, const Tensor& values) {
  if (!scope.ok()) return {};
  const int64_t stored = values->shape[0];
  const int64_t shape[] = {stored, stored > 0 ? values->numel / stored : 1};
  return ops::reshape(scope, values, list_of(shape));
}

// For each element the sum of its row.
Tensor sums_of_rows(Scope& scope, const Tensor& x, const Tensor& rows, int64_t count) {
  return ops::index_select(scope, ops::segment_add(scope, x, rows, count), rows, 0);
}

}  // namespace

TENON_DECOMPOSE(csr_is_sorted) {
  Scope scope(err);
  Tensor indptr = operand(scope, args[0]), indices = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int64_t count = indices->numel;
  Tensor rows = ops::csr_rows(scope, indptr, count);
  if (count < 2)
    return finish(scope, outs,
                  ops::full(scope, IntList(), true, TENON_DTYPE_BOOL, indices->device));
  const auto before = [&](const Tensor& x) { return ops::narrow(scope, x, 0, 0, count - 1); };
  const auto behind = [&](const Tensor& x) { return ops::narrow(scope, x, 0, 1, count - 1); };
  Tensor is_right = ops::logical_or(scope, ops::less(scope, before(rows), behind(rows)),
                                    ops::less(scope, before(indices), behind(indices)));
  return finish(scope, outs, ops::all(scope, is_right));
}

TENON_DECOMPOSE(csr_softmax) {
  Scope scope(err);
  Tensor indptr = operand(scope, args[0]), values = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int64_t count = indptr->numel - 1;
  Tensor rows = ops::csr_rows(scope, indptr, values->shape[0]);
  Tensor x = stored_matrix(scope, values);
  Tensor largest = ops::segment_extreme(scope, x, rows, count);
  Tensor moved = ops::subtract(scope, x, ops::index_select(scope, largest, rows, 0));
  Tensor powers = ops::exp(scope, moved);
  Tensor sums = sums_of_rows(scope, powers, rows, count);
  Tensor out = bool_of(args[2]) ? ops::subtract(scope, moved, ops::log(scope, sums))
                                : ops::divide(scope, powers, sums);
  return finish(scope, outs, ops::reshape(scope, out, list_of(shape_of(*values.get()))));
}

TENON_DECOMPOSE(csr_softmax_grad) {
  Scope scope(err);
  Tensor indptr = operand(scope, args[0]), y = operand(scope, args[2]);
  Tensor grad = stored_matrix(scope, operand(scope, args[1])), from = stored_matrix(scope, y);
  if (!scope.ok()) return scope.status();
  const int64_t count = indptr->numel - 1;
  Tensor rows = ops::csr_rows(scope, indptr, y->shape[0]);
  Tensor out;
  if (bool_of(args[3])) {
    Tensor sums = sums_of_rows(scope, grad, rows, count);
    out = ops::subtract(scope, grad, ops::multiply(scope, ops::exp(scope, from), sums));
  } else {
    Tensor sums = sums_of_rows(scope, ops::multiply(scope, grad, from), rows, count);
    out = ops::multiply(scope, from, ops::subtract(scope, grad, sums));
  }
  return finish(scope, outs, ops::reshape(scope, out, list_of(shape_of(*y.get()))));
}

TENON_DECOMPOSE(coo_coalesce) {
  Scope scope(err);
  Tensor indices = as_int64(scope, operand(scope, args[0]));
  const Ints shape = ints_of(args[1]);
  if (!scope.ok()) return scope.status();
  if (indices->ndim != 2 || indices->shape[0] != static_cast<int64_t>(shape.size()) ||
      shape.empty())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "coo_coalesce",
                        "expected indices [axes, stored elements] and a size for each axis, got "
                        "indices of shape %s and %zu sizes",
                        shape_text(*indices.get()).c_str(), shape.size());
  Tensor keys;
  int64_t elements = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    Tensor along = ops::select(scope, indices, 0, static_cast<int64_t>(axis));
    TENON_TRY(expect_keys("coo_coalesce", elements, shape[axis], err));
    elements *= std::max<int64_t>(shape[axis], 1);
    TENON_TRY(expect_inside(scope, along, shape[axis], "coo: expected indices",
                            " along axis " + std::to_string(axis), err));
    keys = axis == 0 ? along : ops::add(scope, ops::multiply(scope, keys, shape[axis]), along);
  }
  const Groups groups = groups_of(scope, keys);
  if (!scope.ok()) return scope.status();
  Tensor group = groups.group;
  if (keys->numel > 0)
    group = ops::index_put(scope, numbers_to(scope, keys->numel, keys), {groups.order}, group);
  std::vector<Tensor> along(shape.size());
  Tensor rest = groups.distinct;
  for (size_t axis = shape.size() - 1; axis > 0; --axis) {
    const int64_t size = std::max<int64_t>(shape[axis], 1);
    along[axis] = ops::remainder(scope, rest, size);
    rest = ops::floor_divide(scope, rest, size);
  }
  along[0] = rest;
  return finish(scope, outs, ops::stack(scope, along, 0), group);
}

TENON_DECOMPOSE(csr_product) {
  Scope scope(err);
  Tensor indptr = operand(scope, args[0]), x = operand(scope, args[2]), y = operand(scope, args[5]);
  Tensor columns_of_y = operand(scope, args[4]);
  const int64_t columns = int_of(args[6]);
  const tenon_value right[] = {args[3], args[4]};
  if (!scope.ok()) return scope.status();
  if (x->numel != tensor_of(args[1]).numel || y->numel != columns_of_y->numel)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "csr_product",
        "expected as many values as indices, got %lld for %lld and %lld for %lld",
        static_cast<long long>(x->numel), static_cast<long long>(tensor_of(args[1]).numel),
        static_cast<long long>(y->numel), static_cast<long long>(columns_of_y->numel));
  TENON_TRY(expect_factors(scope, "csr_product", args, right, columns, err));
  Products products = products_of(scope, args, right, columns);
  if (!scope.ok()) return scope.status();
  const Groups groups = groups_of(scope, products.key);
  Tensor sums = sums_of(scope, products, groups, x, y);
  Tensor bounds = ops::multiply(scope, numbers_to(scope, indptr->numel, indptr), columns);
  Tensor begins = ops::searchsorted(scope, groups.distinct, bounds);
  Tensor indices = ops::remainder(scope, groups.distinct, std::max<int64_t>(columns, 1));
  if (scope.ok() && columns_of_y->dtype == TENON_DTYPE_I32)
    indices = ops::cast(scope, indices, TENON_DTYPE_I32);
  return finish(scope, outs, begins, indices, sums);
}

TENON_DECOMPOSE(csr_masked_product) {
  Scope scope(err);
  Tensor indptr = operand(scope, args[0]), indices = as_int64(scope, operand(scope, args[1]));
  Tensor x = operand(scope, args[4]), y = operand(scope, args[7]);
  const int64_t columns = int_of(args[8]);
  const tenon_value right[] = {args[5], args[6]};
  TENON_TRY(expect_factors(scope, "csr_masked_product", args + 2, right, columns, err));
  TENON_TRY(expect_columns(scope, "csr_masked_product", indices, columns, err));
  Products products = products_of(scope, args + 2, right, columns);
  if (!scope.ok()) return scope.status();
  if (products.key->numel == 0 || indices->numel == 0)
    return finish(scope, outs, full_with(scope, x, shape_of(*indices.get()), 0));
  const Groups groups = groups_of(scope, products.key);
  Tensor sums = sums_of(scope, products, groups, x, y);
  if (!scope.ok()) return scope.status();
  const Tensor& distinct = groups.distinct;
  const int64_t count = distinct->numel;
  Tensor rows = ops::csr_rows(scope, indptr, indices->numel);
  Tensor wanted = ops::add(scope, ops::multiply(scope, rows, columns), indices);
  Tensor at = ops::minimum(scope, ops::searchsorted(scope, distinct, wanted), count - 1);
  Tensor is_there = ops::equal(scope, ops::index_select(scope, distinct, at, 0), wanted);
  Tensor found = ops::index_select(scope, sums, at, 0);
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
