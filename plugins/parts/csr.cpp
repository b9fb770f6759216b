// SPDX-License-Identifier: Apache-2.0
// Kinds "csr", a matrix row after row, "csc", column after column, and "bsr", row after row of blocks. What the stored
// elements of a matrix are is the same in all: `indptr` for one axis, `indices` for the other one. csc is csr of the
// transpose, and bsr is csr of blocks.
#include "rules.hpp"

#include <tenon/text.hpp>

namespace tenon::parts {
namespace {

constexpr const char* kPartNames[] = {"indptr", "indices", "values"};

bool is_vector_of_integers(const tenon_tensor& tensor) {
  return tensor.ndim == 1 && tensor.dtype >= TENON_DTYPE_U8 && tensor.dtype <= TENON_DTYPE_I64;
}

// `major` is the number of what indptr says begin and end of.
tenon_status check(const char* name, int32_t ndim, const int64_t* shape, int64_t major,
                   tenon_tensor* const* parts, int32_t values_ndim, tenon_err* err) {
  const tenon_tensor &indptr = *parts[kIndptr], &indices = *parts[kIndices];
  const tenon_tensor& values = *parts[kStored];
  const std::string kind = std::string(name) + ": ";
  if (ndim != 2)
    return fail(err, TENON_INVALID_ARGUMENT,
                kind + "expected the shape of a matrix, got " + shape_text(ndim, shape));
  if (!is_vector_of_integers(indptr) || indptr.shape[0] != major + 1)
    return fail(err, TENON_INVALID_ARGUMENT,
                kind + "expected an integer indptr of shape " +
                    list_text(std::vector<int64_t>{major + 1}) + ", got " +
                    host->dtype_name(indptr.dtype) + " of shape " + shape_text(indptr));
  if (!is_vector_of_integers(indices) || values.ndim != values_ndim ||
      values.shape[0] != indices.shape[0])
    return fail(err, TENON_INVALID_ARGUMENT,
                kind + "expected integer indices [stored elements] and as many values, got " +
                    std::string(host->dtype_name(indices.dtype)) + " of shape " +
                    shape_text(indices) + " and shape " + shape_text(values));
  return TENON_OK;
}

tenon_status check_csr(int32_t ndim, const int64_t* shape, tenon_tensor* const* parts,
                       const int64_t*, tenon_err* err) {
  return check("csr", ndim, shape, ndim == 2 ? shape[0] : 0, parts, 1, err);
}
tenon_status check_csc(int32_t ndim, const int64_t* shape, tenon_tensor* const* parts,
                       const int64_t*, tenon_err* err) {
  return check("csc", ndim, shape, ndim == 2 ? shape[1] : 0, parts, 1, err);
}
tenon_status check_bsr(int32_t ndim, const int64_t* shape, tenon_tensor* const* parts,
                       const int64_t*, tenon_err* err) {
  const tenon_tensor& values = *parts[kStored];
  if (ndim != 2 || values.ndim != 3 || values.shape[1] < 1 || values.shape[2] < 1 ||
      shape[0] % values.shape[1] != 0 || shape[1] % values.shape[2] != 0)
    return fail(err, TENON_INVALID_ARGUMENT,
                "bsr: expected values [stored blocks, rows of a block, columns of a block] whose "
                "blocks divide the shape of a matrix, got values of shape " +
                    shape_text(values) + " for shape " + shape_text(ndim, shape));
  return check("bsr", ndim, shape, shape[0] / values.shape[1], parts, 3, err);
}

// The shape of what pairs_of gives.
std::vector<int64_t> shape_of_pairs(const Kind* kind, const std::vector<int64_t>& shape,
                                    const Tensor& values) {
  if (kind == &kCsr) return shape;
  if (kind == &kCsc) return {shape[1], shape[0]};
  const int64_t rows = values->shape[1], columns = values->shape[2];
  return {shape[0] / rows, shape[1] / columns, rows, columns};
}

Tensor along(Scope& scope, const Composed& coo, int64_t axis) {
  return run(scope, op::select, {box(coo.parts[0]), boxed(int64_t{0}), boxed(axis)});
}

// 0, 1, ... along one of the axes of [blocks, rows, columns], times `scale` of each block.
Tensor inside(Scope& scope, const Tensor& blocks, int64_t size, const std::vector<int64_t>& shape) {
  const Tensor first =
      reshaped(scope, run(scope, op::multiply, {box(blocks), boxed(size)}), {-1, 1, 1});
  return run(scope, op::add,
             {box(first), box(reshaped(scope, numbers(scope, size, blocks), shape))});
}

Tensor elements_of_blocks(Scope& scope, const Tensor& x) {
  const Tensor pairs = pairs_of(scope, x);
  if (!scope.ok()) return {};
  const Composed &blocks = *composed_of(pairs.get()), &bsr = *composed_of(x.get());
  const int64_t rows = block_size(bsr, 0), columns = block_size(bsr, 1);
  const Tensor row = inside(scope, along(scope, blocks, 0), rows, {1, rows, 1});
  const Tensor column = inside(scope, along(scope, blocks, 1), columns, {1, 1, columns});
  const Tensor zeros = filled(scope, {1, rows, columns}, 0, TENON_DTYPE_I64, x->device);
  const auto flat = [&](const Tensor& index) {
    return reshaped(scope, run(scope, op::add, {box(index), box(zeros)}), {-1});
  };
  const Tensor flat_row = flat(row), flat_column = flat(column);
  if (!scope.ok()) return {};
  tenon_tensor* both[] = {flat_row.get(), flat_column.get()};
  return compose(scope, &kCoo, shape_of(x.get()),
                 {run(scope, op::stack, {boxed(both, 2), boxed(int64_t{0})}),
                  reshaped(scope, bsr.values(), {-1})});
}

}  // namespace

const Kind kCsr = {.struct_size = sizeof(Kind),
                   .layer = -1,
                   .name = "csr",
                   .nparts = 3,
                   .nwords = 0,
                   .values = kStored,
                   .part_names = kPartNames,
                   .check = check_csr,
                   .call = call_compressed};
const Kind kCsc = {.struct_size = sizeof(Kind),
                   .layer = -1,
                   .name = "csc",
                   .nparts = 3,
                   .nwords = 0,
                   .values = kStored,
                   .part_names = kPartNames,
                   .check = check_csc,
                   .call = call_compressed};
const Kind kBsr = {.struct_size = sizeof(Kind),
                   .layer = -1,
                   .name = "bsr",
                   .nparts = 3,
                   .nwords = 0,
                   .values = kStored,
                   .part_names = kPartNames,
                   .check = check_bsr,
                   .call = call_compressed};

Tensor flipped(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Composed& whole = *composed_of(x.get());
  return compose(scope, whole.kind == &kCsr ? &kCsc : &kCsr, {x->shape[1], x->shape[0]},
                 whole.parts);
}

Tensor pairs_of(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Composed& a = *composed_of(x.get());
  const Tensor rows =
      run(scope, op::csr_rows, {box(a.parts[kIndptr]), boxed(a.parts[kIndices]->shape[0])});
  const Tensor columns = cast_to(scope, a.parts[kIndices], TENON_DTYPE_I64);
  if (!scope.ok()) return {};
  tenon_tensor* both[] = {rows.get(), columns.get()};
  const Tensor indices = run(scope, op::stack, {boxed(both, 2), boxed(int64_t{0})});
  return compose(scope, &kCoo, shape_of_pairs(a.kind, shape_of(x.get()), a.values()),
                 {indices, a.values()});
}

Tensor of_pairs(Scope& scope, const Tensor& pairs, const Kind* kind,
                const std::vector<int64_t>& shape) {
  if (!scope.ok()) return {};
  const Composed& coo = *composed_of(pairs.get());
  const Tensor indptr =
      run(scope, op::searchsorted,
          {box(along(scope, coo, 0)), box(numbers(scope, pairs->shape[0] + 1, coo.parts[0]))});
  return compose(scope, kind, shape, {indptr, along(scope, coo, 1), coo.values()});
}

Tensor distinct(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Kind* kind = composed_of(x.get())->kind;
  if (kind == &kCoo) return is_ascending(scope, x) ? x : coalesced(scope, x);
  const Composed& a = *composed_of(x.get());
  if (read_integer(scope,
                   run(scope, op::csr_is_sorted, {box(a.parts[kIndptr]), box(a.parts[kIndices])})))
    return x;
  return of_pairs(scope, coalesced(scope, pairs_of(scope, x)), kind, shape_of(x.get()));
}

Tensor as_coo(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Kind* kind = composed_of(x.get())->kind;
  if (kind == &kCoo) return x;
  if (kind == &kBsr) return elements_of_blocks(scope, x);
  const Tensor pairs = pairs_of(scope, x);
  if (kind == &kCsr || !scope.ok()) return pairs;
  return run(scope, op::transpose, {box(pairs)});
}

Tensor of_sorted_coo(Scope& scope, const Tensor& coo, const Kind* kind) {
  if (!scope.ok() || kind == &kCoo) return coo;
  if (coo->ndim != 2 || index_axes(*composed_of(coo.get())) != 2) {
    scope.fail(TENON_INVALID_ARGUMENT,
               std::string(kind->name) +
                   ": expected a matrix of two axes with indices, got shape " +
                   shape_text(*coo.get()));
    return {};
  }
  const Tensor rows = of_pairs(scope, coo, &kCsr, shape_of(coo.get()));
  return kind == &kCsr ? rows : flipped(scope, as_csr(scope, flipped(scope, rows)));
}

// A csc matrix is the transpose of a csr one.
Tensor as_csr(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Composed& a = *composed_of(x.get());
  if (a.kind == &kCsr) return x;
  if (a.kind != &kCsc) return of_sorted_coo(scope, coalesced(scope, as_coo(scope, x)), &kCsr);
  tenon_value args[] = {box(a.parts[kIndptr]), box(a.parts[kIndices]), boxed(x->shape[0])};
  tenon_value outs[] = {kNoValue, kNoValue, kNoValue};
  if (!op::csr_transpose.run(scope, args, 3, outs, 3)) return {};
  const Tensor indptr = Tensor::adopt(as_tensor(outs[0])),
               indices = Tensor::adopt(as_tensor(outs[1])),
               order = Tensor::adopt(as_tensor(outs[2]));
  return compose(scope, &kCsr, shape_of(x.get()),
                 {indptr, indices, select_rows(scope, a.values(), order)});
}

}  // namespace tenon::parts
