// SPDX-License-Identifier: Apache-2.0
// Sums along axes, other shapes, and joined tensors of layout coo: their indices are moved, and their values stay. What is
// compressed goes through coo.
#include "rules.hpp"

#include <tenon/text.hpp>

#include <algorithm>

namespace tenon::parts {
namespace {

Tensor along(Scope& scope, const Composed& coo, int64_t axis) {
  return cast_to(scope, run(scope, op::select, {box(coo.parts[0]), boxed(int64_t{0}), boxed(axis)}),
                 TENON_DTYPE_I64);
}

Tensor stacked(Scope& scope, const std::vector<Tensor>& rows) {
  if (!scope.ok()) return {};
  std::vector<tenon_tensor*> handles;
  for (const Tensor& row : rows) handles.push_back(row.get());
  return run(scope, op::stack, {boxed(handles.data(), handles.size()), boxed(int64_t{0})});
}

Tensor joined(Scope& scope, const std::vector<Tensor>& tensors, int64_t axis) {
  if (!scope.ok()) return {};
  std::vector<tenon_tensor*> handles;
  for (const Tensor& tensor : tensors) handles.push_back(tensor.get());
  return run(scope, op::concat, {boxed(handles.data(), handles.size()), boxed(axis)});
}

// Which axes a list names. False if one of them is none.
bool read_axes(const tenon_value& list, int64_t ndim, std::vector<bool>& named) {
  named.assign(static_cast<size_t>(ndim), false);
  for (uint64_t i = 0; i < list.aux; ++i) {
    const int64_t axis = static_cast<const int64_t*>(list.v.p)[i];
    if (axis < -ndim || axis >= ndim) return false;
    named[static_cast<size_t>(axis < 0 ? axis + ndim : axis)] = true;
  }
  return true;
}

// Without the indices along an axis, elements that differ in these alone have equal ones, which are sums.
Tensor summed_along(Scope& scope, const Tensor& whole, const std::vector<bool>& axes, bool keeps) {
  const Tensor x = with_exact_sums(scope, whole, TENON_DTYPE_I64);
  if (!scope.ok()) return {};
  const Composed& coo = *composed_of(x.get());
  const int64_t indexed = index_axes(coo), stored = coo.parts[0]->shape[1];
  std::vector<int64_t> shape, inner;
  std::vector<Tensor> rows;
  bool has_index = false;
  for (int64_t axis = 0; axis < x->ndim; ++axis) {
    const bool goes = axes[static_cast<size_t>(axis)];
    if (goes && axis >= indexed) inner.push_back(axis - indexed + 1);
    if (!goes || keeps) shape.push_back(goes ? 1 : x->shape[axis]);
    if (axis >= indexed) continue;
    const Tensor index = checked_along(scope, coo, axis, x->shape[axis]);
    has_index |= !goes;
    if (!goes)
      rows.push_back(index);
    else if (keeps)
      rows.push_back(filled(scope, {stored}, 0, TENON_DTYPE_I64, x->device));
  }
  Tensor values = cast_to(scope, coo.values(), accumulated(x->dtype));
  if (!has_index) inner.push_back(0);
  if (!inner.empty())
    values = run(scope, op::sum, {box(values), box(inner), boxed(keeps && has_index)});
  if (!has_index) return reshaped(scope, values, shape);
  return compose(scope, &kCoo, shape, {stacked(scope, rows), values});
}

Result reshaped_coo(Scope& scope, const Tensor& x, std::vector<int64_t> shape) {
  const Composed& coo = *composed_of(x.get());
  const auto dense = static_cast<size_t>(x->ndim - index_axes(coo));
  if (shape.size() <= dense) return declined();
  const auto open = std::ranges::find(shape, -1);
  if (open != shape.end()) {
    int64_t others = 1;
    for (const int64_t size : shape) others *= size == -1 ? 1 : size;
    if (others <= 0 || x->numel % others != 0) return declined();
    *open = x->numel / others;
  }
  int64_t total = 1;
  for (const int64_t size : shape) total *= size;
  if (total != x->numel || std::ranges::any_of(shape, [](int64_t size) { return size < 0; })) {
    scope.fail(TENON_INVALID_ARGUMENT, "[reshape] expected a shape of " + std::to_string(x->numel) +
                                           " elements, got " + list_text(shape));
    return {};
  }
  if (!std::equal(shape.end() - static_cast<std::ptrdiff_t>(dense), shape.end(),
                  x->shape + index_axes(coo)))
    return declined();
  const auto axes = static_cast<int64_t>(shape.size() - dense);
  const Tensor keys = keys_of(scope, coo, shape_of(x.get()));
  const Tensor indices = indices_of(scope, keys, axes, shape);
  return {compose(scope, &kCoo, shape, {indices, coo.values()})};
}

// Along an axis with indices, which are moved behind those of the tensors before.
Result joined_coo(Scope& scope, const std::vector<Tensor>& all, int64_t axis) {
  const Composed& first = *composed_of(all[0].get());
  const int64_t axes = index_axes(first);
  if (axis >= axes) return declined();
  std::vector<int64_t> shape = shape_of(all[0].get());
  const auto at = static_cast<size_t>(axis);
  shape[at] = 0;
  int32_t dtype = all[0]->dtype;
  for (const Tensor& x : all) {
    std::vector<int64_t> own = shape_of(x.get());
    if (own.size() != shape.size() || index_axes(*composed_of(x.get())) != axes) return declined();
    own[at] = shape[at];
    if (own != shape) {
      scope.fail(TENON_INVALID_ARGUMENT,
                 "[concat] expected shapes that agree but for axis " + std::to_string(axis) +
                     ", got " + shape_text(*all[0].get()) + " and " + shape_text(*x.get()));
      return {};
    }
    shape[at] += x->shape[axis];
    dtype = host->dtype_promote(dtype, x->dtype);
  }
  std::vector<Tensor> indices, values;
  int64_t before = 0;
  for (const Tensor& x : all) {
    const Tensor exact = with_exact_sums(scope, x, dtype);
    if (!scope.ok()) return {};
    const Composed& coo = *composed_of(exact.get());
    std::vector<Tensor> rows;
    for (int64_t i = 0; i < axes; ++i) {
      if (i != axis) {
        rows.push_back(along(scope, coo, i));
        continue;
      }
      const Tensor own = checked_along(scope, coo, i, x->shape[i]);
      rows.push_back(run(scope, op::add, {box(own), boxed(before)}));
    }
    indices.push_back(stacked(scope, rows));
    values.push_back(cast_to(scope, coo.values(), dtype));
    before += x->shape[axis];
  }
  return {compose(scope, &kCoo, shape, {joined(scope, indices, 1), joined(scope, values, 0)})};
}

}  // namespace

Result sum_along(Scope& scope, const Call& call) {
  const Tensor x = call.tensor(0);
  std::vector<bool> axes;
  if (!read_axes(call.args[1], x->ndim, axes)) return declined();
  return {summed_along(scope, x, axes, call.nargs > 2 && call.args[2].v.i != 0)};
}

int64_t summed_elements(const Call& call) {
  const tenon_tensor& x = *as_tensor(call.args[0]);
  std::vector<bool> axes;
  if (!call.is_given(1)) return x.numel;
  if (!read_axes(call.args[1], x.ndim, axes)) return 0;
  int64_t count = 1;
  for (int32_t axis = 0; axis < x.ndim; ++axis)
    count *= axes[static_cast<size_t>(axis)] ? x.shape[axis] : 1;
  return count;
}

Result reshape(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  const Kind* kind = call.composed(0)->kind;
  const auto* sizes = static_cast<const int64_t*>(call.args[1].v.p);
  const Tensor x = as_coo(scope, call.tensor(0));
  if (!scope.ok()) return {};
  const Result found = reshaped_coo(scope, x, {sizes, sizes + call.args[1].aux});
  if (kind == &kCoo || !found.tensor || found.tensor->ndim != 2) return found;
  return {of_sorted_coo(scope, coalesced(scope, found.tensor), kind == &kCsc ? &kCsc : &kCsr)};
}

Result concat(Scope& scope, const Call& call) {
  auto* list = static_cast<tenon_tensor* const*>(call.args[0].v.p);
  std::vector<Tensor> all;
  bool is_coo = true, is_csc = true;
  for (uint64_t i = 0; i < call.args[0].aux; ++i) {
    const Composed* one = composed_of(list[i]);
    if (!one || (one->kind != &kCoo && !is_compressed(one->kind))) return declined();
    is_coo &= one->kind == &kCoo;
    is_csc &= one->kind == &kCsc;
    all.push_back(as_coo(scope, Tensor::borrow(list[i])));
    if (!scope.ok()) return {};
  }
  int64_t axis = call.args[1].v.i;
  if (axis < 0) axis += all[0]->ndim;
  if (axis < 0 || axis >= all[0]->ndim) return declined();
  const Result found = joined_coo(scope, all, axis);
  if (is_coo || !found.tensor) return found;
  return {of_sorted_coo(scope, coalesced(scope, found.tensor), is_csc ? &kCsc : &kCsr)};
}

}  // namespace tenon::parts
