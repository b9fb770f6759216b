// SPDX-License-Identifier: Apache-2.0
// From one layout to another.
#include "rules.hpp"

#include <tenon/error.hpp>
#include <tenon/text.hpp>

namespace tenon::parts {
namespace {

// The elements that are not zero, in the order of memory.
Tensor coo_of_dense(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  if (x->ndim == 0) {
    scope.fail(TENON_INVALID_ARGUMENT, "coo: expected a tensor of at least one axis, got none");
    return {};
  }
  const Tensor found = run(scope, op::nonzero, {box(x)});  // [stored, axes]
  const Tensor indices = run(scope, op::clone, {box(run(scope, op::transpose, {box(found)}))});
  std::vector<Tensor> along;
  std::vector<tenon_tensor*> handles;
  for (int64_t axis = 0; axis < x->ndim; ++axis) {
    along.push_back(run(scope, op::select, {box(indices), boxed(int64_t{0}), boxed(axis)}));
    handles.push_back(along.back().get());
  }
  if (!scope.ok()) return {};
  const Tensor values = run(scope, op::index, {box(x), boxed(handles.data(), handles.size())});
  return compose(scope, &kCoo, shape_of(x.get()), {indices, values});
}

// Blocks lie in a tensor [rows of blocks, columns of blocks, rows of a block, columns of a block].
Tensor bsr_to_dense(Scope& scope, const Tensor& x) {
  const Tensor pairs = pairs_of(scope, x);
  const Tensor blocks = coo_to_dense(scope, pairs);
  return reshaped(scope,
                  run(scope, op::transpose, {box(blocks), boxed(int64_t{1}), boxed(int64_t{2})}),
                  shape_of(x.get()));
}

Tensor converted(Scope& scope, const Tensor& x, std::string_view layout) {
  const Composed* from = composed_of(x.get());
  const Kind* kind = from ? from->kind : nullptr;
  if (layout == "strided") {
    if (kind == &kRagged) return ragged_to_dense(scope, x);
    if (kind == &kBsr) return bsr_to_dense(scope, x);
    return coo_to_dense(scope, as_coo(scope, x));
  }
  const Tensor coo = !kind ? coo_of_dense(scope, x) : x;
  if (layout == "coo") return kind ? coalesced(scope, as_coo(scope, x)) : coo;
  if (layout == "csr") return kind ? as_csr(scope, x) : of_sorted_coo(scope, coo, &kCsr);
  // csc is csr of the transpose.
  return flipped(scope, as_csr(scope, run(scope, op::transpose, {box(coo)})));
}

}  // namespace

tenon_status convert(tenon_tensor* x, const char* layout, tenon_tensor** out, tenon_err* err) {
  return guarded(err, [&] {
    const std::string_view to = layout ? layout : "";
    const Composed* from = composed_of(x);
    const bool is_own = from && (is_compressed(from->kind) || from->kind == &kCoo ||
                                 (from->kind == &kRagged && to == "strided"));
    if (x->flags & TENON_TENSOR_COMPOSED && !is_own && !(from && to == from->kind->name))
      throw Error(TENON_UNSUPPORTED,
                  std::string("expected a sparse tensor, of layout coo, csr, csc or bsr, got ") +
                      (from ? from->kind->name : "another one") +
                      (from && from->kind == &kRagged ? "; use to_dense() first"
                                                      : ", whose plugin converts it"));
    if (to != "strided" && to != "coo" && to != "csr" && to != "csc" &&
        !(from && to == from->kind->name))
      throw Error(
          TENON_INVALID_ARGUMENT,
          "expected layout 'strided', 'coo', 'csr' or 'csc', got '" + std::string(to) + "'");
    if (to == (from ? from->kind->name : "strided")) {
      host->tensor_retain(x);
      *out = x;
      return;
    }
    Scope scope(err);
    Tensor result = converted(scope, Tensor::borrow(x), to);
    if (scope.ok())
      *out = result.release();
    else
      throw Error(scope.status(), "");
  });
}

tenon_status coalesce(tenon_tensor* x, tenon_tensor** out, tenon_err* err) {
  return guarded(err, [&] {
    const Composed* from = composed_of(x);
    if (!from || from->kind != &kCoo)
      throw Error(TENON_INVALID_ARGUMENT,
                  std::string("coalesce: expected a tensor of layout coo, got ") +
                      (from ? from->kind->name : "strided"));
    Scope scope(err);
    Tensor result = coalesced(scope, Tensor::borrow(x));
    if (!scope.ok()) throw Error(scope.status(), "");
    *out = result.release();
  });
}

}  // namespace tenon::parts
