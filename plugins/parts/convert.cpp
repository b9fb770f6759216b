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

Tensor converted(Scope& scope, const Tensor& x, std::string_view layout) {
  const Composed* from = composed_of(x.get());
  const bool is_csr = from && from->kind == &kCsr;
  if (layout == "strided") return coo_to_dense(scope, is_csr ? csr_to_coo(scope, x) : x);
  if (layout == "coo")
    return is_csr ? coalesced(scope, csr_to_coo(scope, x)) : coo_of_dense(scope, x);
  return coo_to_csr(scope, from ? x : coo_of_dense(scope, x));
}

}  // namespace

tenon_status convert(tenon_tensor* x, const char* layout, tenon_tensor** out, tenon_err* err) {
  return guarded(err, [&] {
    const std::string_view to = layout ? layout : "";
    const Composed* from = composed_of(x);
    if (x->flags & TENON_TENSOR_COMPOSED && (!from || (from->kind != &kCoo && from->kind != &kCsr)))
      throw Error(TENON_UNSUPPORTED, std::string("expected a tensor of layout coo or csr, got ") +
                                         (from ? from->kind->name : "another one") +
                                         ", whose plugin converts it");
    if (to != "strided" && to != "coo" && to != "csr")
      throw Error(TENON_INVALID_ARGUMENT,
                  "expected layout 'strided', 'coo' or 'csr', got '" + std::string(to) + "'");
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
