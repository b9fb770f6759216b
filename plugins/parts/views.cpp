// SPDX-License-Identifier: Apache-2.0
// Transposes, slices and selections. These are no views of memory, but the parts are shared where they stay as they are:
// a transpose of csr is csc of the same parts, and some rows of csr are views of its parts.
#include "rules.hpp"

#include <tenon/text.hpp>

#include <algorithm>

namespace tenon::parts {
namespace {

Tensor part_of(Scope& scope, const Tensor& x, int64_t axis, int64_t begin, int64_t length) {
  return run(scope, op::narrow, {box(x), boxed(axis), boxed(begin), boxed(length)});
}
int64_t read_at(Scope& scope, const Tensor& x, int64_t at) {
  return read_integer(scope, part_of(scope, x, 0, at, 1));
}
Tensor compare(Scope& scope, call::Operator& op, const Tensor& x, int64_t number) {
  return run(scope, op, {box(x), boxed(number)});
}

// -- transposes

Tensor coo_transposed(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Composed& coo = *composed_of(x.get());
  const Tensor order =
      run(scope, op::subtract, {boxed(int64_t{1}), box(numbers(scope, 2, coo.parts[0]))});
  return compose(scope, &kCoo, {x->shape[1], x->shape[0]},
                 {select_rows(scope, coo.parts[0], order), coo.values()});
}

Tensor bsr_transposed(Scope& scope, const Tensor& x) {
  const Tensor pairs = pairs_of(scope, x);
  if (!scope.ok()) return {};
  const Composed& coo = *composed_of(pairs.get());
  const Tensor order =
      run(scope, op::subtract, {boxed(int64_t{1}), box(numbers(scope, 2, coo.parts[0]))});
  const Tensor blocks =
      run(scope, op::clone, {box(run(scope, op::transpose, {box(coo.values())}))});
  const Tensor transposed =
      compose(scope, &kCoo, {pairs->shape[1], pairs->shape[0], pairs->shape[3], pairs->shape[2]},
              {select_rows(scope, coo.parts[0], order), blocks});
  return of_pairs(scope, coalesced(scope, transposed), &kBsr, {x->shape[1], x->shape[0]});
}

Result transposed(Scope& scope, const Tensor& x) {
  const Kind* kind = composed_of(x.get())->kind;
  if (kind == &kBsr) return {bsr_transposed(scope, x)};
  if (kind != &kCoo) return {flipped(scope, x)};
  if (x->ndim != 2 || index_axes(*composed_of(x.get())) != 2) return declined();
  return {coo_transposed(scope, x)};
}

Result transpose(Scope& scope, const Call& call) {
  const Tensor x = call.tensor(0);
  if (!call.composed(0) || x->ndim != 2) return declined();
  const auto axis = [&](uint32_t i) { return call.args[i].v.i + (call.args[i].v.i < 0 ? 2 : 0); };
  if (axis(1) == axis(2)) return {x};
  if (axis(1) + axis(2) != 1 || axis(1) * axis(2) != 0) return declined();
  return transposed(scope, x);
}

Result permute(Scope& scope, const Call& call) {
  const Tensor x = call.tensor(0);
  if (!call.composed(0) || x->ndim != 2) return declined();
  if (!call.is_given(1)) return transposed(scope, x);
  const auto* axes = static_cast<const int64_t*>(call.args[1].v.p);
  if (call.args[1].aux != 2) return declined();
  const int64_t first = axes[0] < 0 ? axes[0] + 2 : axes[0];
  const int64_t second = axes[1] < 0 ? axes[1] + 2 : axes[1];
  if (first + second != 1 || first * second != 0) return declined();
  return first == 0 ? Result{x} : transposed(scope, x);
}

// -- some rows of csr, or columns of csc

Tensor rows_between(Scope& scope, const Tensor& x, int64_t begin, int64_t end) {
  const Composed& a = *composed_of(x.get());
  const Tensor bounds = part_of(scope, a.parts[kIndptr], 0, begin, end - begin + 1);
  const int64_t first = read_at(scope, bounds, 0), last = read_at(scope, bounds, end - begin);
  if (!scope.ok()) return {};
  if (first < 0 || last < first || last > a.parts[kIndices]->shape[0]) {
    scope.fail(TENON_INVALID_ARGUMENT,
               std::string(a.kind->name) + ": expected an indptr that ascends from 0 to the " +
                   std::to_string(a.parts[kIndices]->shape[0]) + " stored elements, got " +
                   std::to_string(first) + " and " + std::to_string(last) + " at positions " +
                   std::to_string(begin) + " and " + std::to_string(end));
    return {};
  }
  std::vector<int64_t> shape = shape_of(x.get());
  shape[a.kind == &kCsc ? 1 : 0] = end - begin;
  const Tensor from = run(scope, op::subtract, {box(bounds), boxed(first)});
  return compose(scope, a.kind, shape,
                 {from, part_of(scope, a.parts[kIndices], 0, first, last - first),
                  part_of(scope, a.values(), 0, first, last - first)});
}

// Rows in the order of `wanted`, which are int64 numbers of rows, of csr.
Tensor rows_of(Scope& scope, const Tensor& x, const Tensor& wanted) {
  if (!scope.ok()) return {};
  const Composed& a = *composed_of(x.get());
  const int64_t rows = x->shape[a.kind == &kCsc ? 1 : 0], count = wanted->shape[0];
  // Which counts negative ones from the end, and fails by name where a row is outside; so the one behind is there too.
  const Tensor offsets = cast_to(scope, a.parts[kIndptr], TENON_DTYPE_I64);
  const Tensor begin = select_rows(scope, part_of(scope, offsets, 0, 0, rows), wanted);
  const Tensor end = select_rows(scope, part_of(scope, offsets, 0, 1, rows), wanted);
  const Tensor lengths = run(scope, op::subtract, {box(end), box(begin)});
  const Tensor ends = run(scope, op::cumsum, {box(lengths)});
  const Tensor zero = filled(scope, {1}, 0, TENON_DTYPE_I64, x->device);
  const Tensor indptr = concatenated(scope, zero, ends, 0);
  const int64_t total = count > 0 ? read_at(scope, ends, count - 1) : 0;
  const Tensor number = numbers(scope, total, wanted);
  const Tensor which = run(scope, op::searchsorted, {box(ends), box(number), boxed(true)});
  const Tensor shift = run(scope, op::subtract, {box(end), box(ends)});
  const Tensor at = run(scope, op::add, {box(number), box(select_rows(scope, shift, which))});
  if (!scope.ok()) return {};
  std::vector<int64_t> shape = shape_of(x.get());
  shape[a.kind == &kCsc ? 1 : 0] = count;
  return compose(
      scope, a.kind, shape,
      {indptr, select_rows(scope, a.parts[kIndices], at), select_rows(scope, a.values(), at)});
}

// -- of coo

Tensor stored_where(Scope& scope, const Tensor& condition) {
  return run(
      scope, op::select,
      {box(run(scope, op::nonzero, {box(condition)})), boxed(int64_t{1}), boxed(int64_t{0})});
}

// Those with this index, without the axis.
Result coo_select(Scope& scope, const Tensor& x, int64_t axis, int64_t index) {
  const Composed& coo = *composed_of(x.get());
  const int64_t axes = index_axes(coo);
  std::vector<int64_t> shape = shape_of(x.get());
  shape.erase(shape.begin() + axis);
  if (axis >= axes) {
    const Tensor values =
        run(scope, op::select, {box(coo.values()), boxed(axis - axes + 1), boxed(index)});
    return {compose(scope, &kCoo, shape, {coo.parts[0], values})};
  }
  const Tensor found = stored_where(
      scope, compare(scope, op::equal, checked_along(scope, coo, axis, x->shape[axis]), index));
  const Tensor values = select_rows(scope, coo.values(), found);
  if (axes == 1) {  // all that is left is dense: a sum of blocks
    const int64_t first[] = {0};
    const Tensor sums = run(scope, op::sum, {box(values), boxed(first, 1)});
    return {cast_to(scope, sums, x->dtype)};
  }
  const Tensor kept =
      run(scope, op::index_select, {box(coo.parts[0]), box(found), boxed(int64_t{1})});
  std::vector<Tensor> along;
  std::vector<tenon_tensor*> handles;
  for (int64_t i = 0; i < axes; ++i) {
    if (i == axis) continue;
    along.push_back(run(scope, op::select, {box(kept), boxed(int64_t{0}), boxed(i)}));
    handles.push_back(along.back().get());
  }
  if (!scope.ok()) return {};
  return {compose(
      scope, &kCoo, shape,
      {run(scope, op::stack, {boxed(handles.data(), handles.size()), boxed(int64_t{0})}), values})};
}

// Those whose index is begin, begin + step, ... below end, counted from 0.
Tensor coo_slice(Scope& scope, const Tensor& x, int64_t axis, int64_t begin, int64_t end,
                 int64_t step) {
  if (!scope.ok()) return {};
  const Composed& coo = *composed_of(x.get());
  const int64_t axes = index_axes(coo);
  std::vector<int64_t> shape = shape_of(x.get());
  shape[static_cast<size_t>(axis)] = (end - begin + step - 1) / step;
  if (axis >= axes) {
    const int64_t along[] = {axis - axes + 1}, from[] = {begin}, to[] = {end}, by[] = {step};
    return compose(scope, &kCoo, shape,
                   {coo.parts[0], run(scope, op::slice,
                                      {box(coo.values()), boxed(along, 1), boxed(from, 1),
                                       boxed(to, 1), boxed(by, 1)})});
  }
  const Tensor index = checked_along(scope, coo, axis, x->shape[axis]);
  const Tensor from = run(scope, op::subtract, {box(index), boxed(begin)});
  Tensor outside = run(
      scope, op::logical_or,
      {box(compare(scope, op::less, from, 0)), box(compare(scope, op::greater_equal, index, end))});
  if (step > 1)
    outside =
        run(scope, op::logical_or,
            {box(outside),
             box(compare(scope, op::not_equal, compare(scope, op::remainder, from, step), 0))});
  const Tensor found = stored_where(scope, compare(scope, op::equal, outside, 0));
  std::vector<Tensor> along;
  std::vector<tenon_tensor*> handles;
  for (int64_t i = 0; i < axes; ++i) {
    const Tensor all =
        i == axis
            ? compare(scope, op::floor_divide, from, step)
            : cast_to(scope,
                      run(scope, op::select, {box(coo.parts[0]), boxed(int64_t{0}), boxed(i)}),
                      TENON_DTYPE_I64);
    along.push_back(select_rows(scope, all, found));
    handles.push_back(along.back().get());
  }
  if (!scope.ok()) return {};
  return compose(scope, &kCoo, shape,
                 {run(scope, op::stack, {boxed(handles.data(), handles.size()), boxed(int64_t{0})}),
                  select_rows(scope, coo.values(), found)});
}

// -- rules

int64_t major_axis(const Kind* kind) { return kind == &kCsc ? 1 : 0; }

bool is_axis(const Tensor& x, int64_t& axis) {
  if (axis < 0) axis += x->ndim;
  return axis >= 0 && axis < x->ndim;
}

// A row of csr is a vector of layout coo.
Result select(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  Tensor x = call.tensor(0);
  int64_t axis = call.args[1].v.i, index = call.args[2].v.i;
  if (!is_axis(x, axis)) return declined();
  const int64_t size = x->shape[axis], given = index;
  if (index < 0) index += size;
  if (index < 0 || index >= size) {
    scope.fail(TENON_OUT_OF_RANGE, "[select] expected an index of axis " + std::to_string(axis) +
                                       " from " + std::to_string(-size) + " to " +
                                       std::to_string(size - 1) + ", got " + std::to_string(given));
    return {};
  }
  const Kind* kind = call.composed(0)->kind;
  if ((kind == &kCsr || kind == &kCsc) && axis == major_axis(kind)) {
    x = rows_between(scope, x, index, index + 1);
    index = 0;
  }
  x = as_coo(scope, x);
  return scope.ok() ? coo_select(scope, x, axis, index) : Result{};
}

Tensor sliced(Scope& scope, const Tensor& x, int64_t axis, int64_t begin, int64_t end,
              int64_t step) {
  if (!scope.ok() || (begin == 0 && end == x->shape[axis] && step == 1)) return x;
  const Kind* kind = composed_of(x.get())->kind;
  if ((kind == &kCsr || kind == &kCsc) && axis == major_axis(kind) && step == 1)
    return rows_between(scope, x, begin, end);
  const Tensor coo = coo_slice(scope, as_coo(scope, x), axis, begin, end, step);
  if (!scope.ok() || kind == &kCoo) return coo;
  return of_sorted_coo(scope, coalesced(scope, coo), kind == &kCsc ? &kCsc : &kCsr);
}

Result slice(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  Tensor x = call.tensor(0);
  const auto list = [&](uint32_t i) { return static_cast<const int64_t*>(call.args[i].v.p); };
  const auto count = call.args[1].aux;
  for (uint64_t i = 0; i < count; ++i) {
    int64_t axis = list(1)[i], begin = list(2)[i], end = list(3)[i];
    const int64_t step = call.is_given(4) ? list(4)[i] : 1;
    if (!is_axis(x, axis) || step < 1) return declined();
    const int64_t size = x->shape[axis];
    const auto clamped = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    };
    begin = clamped(begin);
    end = std::max(begin, clamped(end));
    x = sliced(scope, x, axis, begin, end, step);
    if (!scope.ok()) return {};
  }
  return {x};
}

Result narrow(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  const Tensor x = call.tensor(0);
  int64_t axis = call.args[1].v.i, begin = call.args[2].v.i;
  const int64_t length = call.args[3].v.i;
  if (!is_axis(x, axis)) return declined();
  if (begin < 0) begin += x->shape[axis];
  if (begin < 0 || length < 0 || begin + length > x->shape[axis]) {
    scope.fail(TENON_OUT_OF_RANGE, "[narrow] expected a part of axis " + std::to_string(axis) +
                                       " of " + std::to_string(x->shape[axis]) + ", got " +
                                       std::to_string(length) + " from " + std::to_string(begin));
    return {};
  }
  return {sliced(scope, x, axis, begin, begin + length, 1)};
}

Result selected_rows(Scope& scope, const Call& call, const Tensor& index, int64_t axis) {
  const Tensor x = call.tensor(0);
  const Kind* kind = call.composed(0)->kind;
  if (!is_axis(x, axis) || index->ndim != 1 || index->dtype < TENON_DTYPE_U8 ||
      index->dtype > TENON_DTYPE_I64 || (kind != &kCsr && kind != &kCsc) ||
      axis != major_axis(kind))
    return declined();
  return {rows_of(scope, x, cast_to(scope, index, TENON_DTYPE_I64))};
}

Result index_select(Scope& scope, const Call& call) {
  if (!call.composed(0) || call.composed(1)) return declined();
  return selected_rows(scope, call, call.tensor(1), call.args[2].v.i);
}

// x[rows], as Python calls it.
Result index(Scope& scope, const Call& call) {
  if (!call.composed(0) || call.args[1].aux != 1) return declined();
  tenon_tensor* only = static_cast<tenon_tensor* const*>(call.args[1].v.p)[0];
  if (!only || only->flags & TENON_TENSOR_COMPOSED) return declined();
  return selected_rows(scope, call, Tensor::borrow(only), call.args[2].v.i);
}

// To its own shape, as indexing does.
Result expand(Scope&, const Call& call) {
  const Tensor x = call.tensor(0);
  const auto* shape = static_cast<const int64_t*>(call.args[1].v.p);
  const bool is_same = call.composed(0) && call.args[1].aux == static_cast<uint64_t>(x->ndim) &&
                       std::equal(x->shape, x->shape + x->ndim, shape,
                                  [](int64_t own, int64_t to) { return to == own || to == -1; });
  return is_same ? Result{x} : declined();
}

constexpr NamedRule kRules[] = {{"expand", expand},
                                {"transpose", transpose},
                                {"permute", permute},
                                {"select", select},
                                {"slice", slice},
                                {"narrow", narrow},
                                {"index_select", index_select},
                                {"index", index},
                                {"matmul", matmul}};

}  // namespace

const std::span<const NamedRule> kViewRules = kRules;

}  // namespace tenon::parts
