// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two tensors of which one or both are sparse. A product has elements where both have some; what
// is 0 where both are 0 has elements where one of them has.
#include "rules.hpp"

#include <tenon/text.hpp>

#include <algorithm>

namespace tenon::parts {
namespace {

// The stored elements in order, each with its key.
struct Keyed {
  Tensor coo, keys;
  const Composed& parts() const { return *composed_of(coo.get()); }
};
Keyed keyed(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Tensor coo = as_coo(scope, x);
  if (!scope.ok()) return {};
  const Tensor sorted = distinct(scope, coo);
  if (!scope.ok()) return {};
  return {sorted, keys_of(scope, *composed_of(sorted.get()), shape_of(x.get()))};
}

Tensor along_first(Scope& scope, const Tensor& x) {
  return run(scope, op::select, {box(x), boxed(int64_t{1}), boxed(int64_t{0})});
}

// The call with these in the place of the two composed arguments.
Tensor call_with(Scope& scope, const Call& call, const Tensor& x, const Tensor& y) {
  if (!scope.ok()) return {};
  tenon_value args[16], out = kNoValue;
  std::copy_n(call.args, call.nargs, args);
  args[0] = box(x), args[1] = box(y);
  if (!scope.check(host->op_call(call.op, args, call.nargs, &out, 1, scope.err()))) return {};
  return Tensor::adopt(as_tensor(out));
}

Tensor with_indices(Scope& scope, const Call& call, const Keyed& like, const Tensor& keys,
                    const Tensor& values) {
  if (!scope.ok()) return {};
  const std::vector<int64_t> shape = shape_of(as_tensor(call.args[0]));
  const Tensor indices = indices_of(scope, keys, index_axes(like.parts()), shape);
  return compose(scope, &kCoo, shape, {indices, values});
}

Tensor intersection(Scope& scope, const Call& call, const Keyed& x, const Keyed& y) {
  if (!scope.ok()) return {};
  const int64_t count = y.keys->numel;
  if (count == 0)
    return with_indices(scope, call, x, y.keys,
                        call_with(scope, call,
                                  run(scope, op::narrow,
                                      {box(x.parts().values()), boxed(int64_t{0}),
                                       boxed(int64_t{0}), boxed(int64_t{0})}),
                                  y.parts().values()));
  const Tensor place = run(scope, op::searchsorted, {box(y.keys), box(x.keys)});
  const Tensor at = run(scope, op::minimum, {box(place), boxed(count - 1)});
  const Tensor is_both = run(scope, op::equal, {box(select_rows(scope, y.keys, at)), box(x.keys)});
  const Tensor from = along_first(scope, run(scope, op::nonzero, {box(is_both)}));
  const Tensor values =
      call_with(scope, call, select_rows(scope, x.parts().values(), from),
                select_rows(scope, y.parts().values(), select_rows(scope, at, from)));
  return with_indices(scope, call, x, select_rows(scope, x.keys, from), values);
}

Tensor united(Scope& scope, const Call& call, const Keyed& x, const Keyed& y) {
  if (!scope.ok()) return {};
  const Tensor all = run(scope, op::sort, {box(concatenated(scope, x.keys, y.keys, 0))});
  if (!scope.ok()) return {};
  Tensor keys = all;
  if (const int64_t count = all->numel; count > 0) {
    const auto part = [&](int64_t begin) {
      return run(scope, op::narrow, {box(all), boxed(int64_t{0}), boxed(begin), boxed(count - 1)});
    };
    const Tensor differs = run(scope, op::not_equal, {box(part(1)), box(part(0))});
    const Tensor first = filled(scope, {1}, 1, TENON_DTYPE_BOOL, all->device);
    keys = run(scope, op::compress, {box(all), box(concatenated(scope, first, differs, 0))});
  }
  if (!scope.ok()) return {};
  const auto spread = [&](const Keyed& one) -> Tensor {
    const Tensor& values = one.parts().values();
    std::vector<int64_t> shape = shape_of(values.get());
    shape[0] = keys->numel;
    const Tensor at = run(scope, op::searchsorted, {box(keys), box(one.keys)});
    const Tensor zeros = filled(scope, shape, 0, values->dtype, values->device);
    tenon_tensor* list[] = {at.get()};
    return run(scope, op::index_put,
               {box(zeros), boxed(list, 1), box(values), boxed(int64_t{0}), boxed(false)});
  };
  return with_indices(scope, call, x, keys, call_with(scope, call, spread(x), spread(y)));
}

tenon_status call_both(const Call& call) {
  Scope scope(call.err);
  const Composed &a = *call.composed(0), &b = *call.composed(1);
  if (call.nargs > 16) return TENON_LAYER_DECLINED;
  if (shape_of(as_tensor(call.args[0])) != shape_of(as_tensor(call.args[1])))
    return refuse(call, "expected tensors of the same shape; use to_dense() first");
  const bool is_product = call.name() == "multiply";
  if (!is_product && !is_zero_at_zero(scope, call)) {
    if (!scope.ok()) return scope.status();
    return refuse(call,
                  "its value where both are 0 is not 0, so that the result would have all "
                  "elements; use to_dense() first");
  }
  const Keyed x = keyed(scope, call.tensor(0)), y = keyed(scope, call.tensor(1));
  if (!scope.ok()) return scope.status();
  if (index_axes(x.parts()) != index_axes(y.parts()))
    return refuse(call, "expected tensors with indices along the same axes; use to_dense() first");
  const Tensor result = is_product ? intersection(scope, call, x, y) : united(scope, call, x, y);
  const Kind* kind = a.kind == b.kind && a.kind != &kBsr ? a.kind : &kCsr;
  if (!scope.ok()) return scope.status();
  const Tensor given = of_sorted_coo(scope, result, kind);
  return scope.ok() ? deliver(call, 0, given) : scope.status();
}

// The elements of a dense tensor where a sparse one has some, in its order.
Tensor gathered(Scope& scope, const Tensor& sparse, const Tensor& dense) {
  const Tensor coo = as_coo(scope, sparse);
  if (!scope.ok()) return {};
  const Composed& parts = *composed_of(coo.get());
  const Tensor whole = run(scope, op::expand, {box(dense), box(shape_of(sparse.get()))});
  std::vector<Tensor> along;
  std::vector<tenon_tensor*> handles;
  for (int64_t axis = 0; axis < index_axes(parts); ++axis) {
    along.push_back(checked_along(scope, parts, axis, sparse->shape[axis]));
    handles.push_back(along.back().get());
  }
  if (!scope.ok()) return {};
  const Tensor found = run(scope, op::index, {box(whole), boxed(handles.data(), handles.size())});
  // Those of a block lie in the shape of the values.
  const Composed& own = *composed_of(sparse.get());
  return own.kind == &kBsr ? reshaped(scope, found, shape_of(own.values().get())) : found;
}

bool broadcasts_to(const tenon_tensor* x, const tenon_tensor* to) {
  if (x->ndim > to->ndim) return false;
  for (int32_t i = 0; i < x->ndim; ++i) {
    const int64_t size = x->shape[i];
    if (size != 1 && size != to->shape[to->ndim - x->ndim + i]) return false;
  }
  return true;
}

// Products with a dense tensor, and quotients by one: what is not stored stays 0.
tenon_status call_beside_dense(const Call& call) {
  const uint32_t at = call.composed(0) ? 0 : 1;
  const bool is_product = call.name() == "multiply";
  const tenon_tensor *dense = as_tensor(call.args[1 - at]), *sparse = as_tensor(call.args[at]);
  if ((!is_product && !(call.name() == "divide" && at == 0)) || !broadcasts_to(dense, sparse))
    return refuse(call, "beside a tensor of all elements; use to_dense() first");
  Scope scope(call.err);
  if (!is_product) {
    // 0 / 0 would be NaN where nothing is stored.
    const Tensor is_zero = run(scope, op::equal, {call.args[1], boxed(int64_t{0})});
    const bool has_zero = read_integer(scope, run(scope, op::any, {box(is_zero)})) != 0;
    if (!scope.ok()) return scope.status();
    if (has_zero)
      return refuse(call, "by a tensor that has zeros, so that 0 / 0 is NaN; use to_dense() first");
  }
  const Tensor beside = gathered(scope, call.tensor(at), call.tensor(1 - at));
  const Tensor& values = call.composed(at)->values();
  const Tensor found =
      at == 0 ? call_with(scope, call, values, beside) : call_with(scope, call, beside, values);
  const Tensor result = with_values(scope, sparse, found);
  return scope.ok() ? deliver(call, 0, result) : scope.status();
}

}  // namespace

tenon_status call_two(const Call& call) {
  if (call.nargs < 2) return TENON_LAYER_DECLINED;
  const tenon_tensor *x = as_tensor(call.args[0]), *y = as_tensor(call.args[1]);
  if (!x || !y) return TENON_LAYER_DECLINED;
  for (uint32_t i = 2; i < call.nargs; ++i)  // no rule for a third one
    if (as_tensor(call.args[i])) return TENON_LAYER_DECLINED;
  return call.composed(0) && call.composed(1) ? call_both(call) : call_beside_dense(call);
}

}  // namespace tenon::parts
