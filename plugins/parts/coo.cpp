// SPDX-License-Identifier: Apache-2.0
// Kind "coo": stored elements by their indices along the first axes, whole blocks where the tensor has more axes. Equal
// indices may repeat: they are sums. With one axis of indices it is some rows of a table, which is what the gradient of an
// embedding is.
#include "rules.hpp"

#include <tenon/error.hpp>
#include <tenon/text.hpp>

#include <algorithm>

namespace tenon::parts {
namespace {

constexpr const char* kPartNames[] = {"indices", "values"};

bool is_integer(int32_t dtype) { return dtype >= TENON_DTYPE_U8 && dtype <= TENON_DTYPE_I64; }

tenon_status check(int32_t ndim, const int64_t* shape, tenon_tensor* const* parts, const int64_t*,
                   tenon_err* err) {
  const tenon_tensor &indices = *parts[0], &values = *parts[1];
  if (indices.ndim != 2 || !is_integer(indices.dtype))
    return fail(err, TENON_INVALID_ARGUMENT,
                "coo: expected integer indices of shape [axes, stored elements], got " +
                    std::string(host->dtype_name(indices.dtype)) + " of shape " +
                    shape_text(indices));
  const int64_t axes = indices.shape[0];
  const bool fits = axes >= 1 && axes <= ndim && values.ndim == 1 + ndim - axes &&
                    values.shape[0] == indices.shape[1] &&
                    std::equal(shape + axes, shape + ndim, values.shape + 1);
  if (fits) return TENON_OK;
  return fail(err, TENON_INVALID_ARGUMENT,
              "coo: expected values [stored elements, and the axes without indices] of a tensor of "
              "shape " +
                  shape_text(ndim, shape) + " with indices of shape " + shape_text(indices) +
                  ", got shape " + shape_text(values));
}

int64_t axes_of(const Composed& coo) { return coo.parts[0]->shape[0]; }
int64_t stored_of(const Composed& coo) { return coo.parts[0]->shape[1]; }

Tensor part_of(Scope& scope, const Tensor& x, int64_t begin, int64_t end) {
  return run(scope, op::narrow, {box(x), boxed(int64_t{0}), boxed(begin), boxed(end - begin)});
}

// Sums of the rows of `values` that have the same number in `group`.
Tensor summed(Scope& scope, const Tensor& values, const Tensor& group, int64_t count) {
  if (!scope.ok()) return {};
  if (values->dtype == TENON_DTYPE_BOOL)  // whose sum is whether any is true
    return cast_to(scope, summed(scope, cast_to(scope, values, TENON_DTYPE_I64), group, count),
                   TENON_DTYPE_BOOL);
  std::vector<int64_t> shape = shape_of(values.get());
  int64_t columns = 1;
  for (size_t i = 1; i < shape.size(); ++i) columns *= shape[i];
  const Tensor flat = reshaped(scope, values, {shape[0], columns});
  const Tensor sums = run(scope, op::segment_add, {box(flat), box(group), boxed(count)});
  shape[0] = count;
  return reshaped(scope, sums, shape);
}

Result add(Scope& scope, const Call& call) {
  const bool subtracts = call.name() == "subtract";
  const Composed *x = call.composed(0), *y = call.composed(1);
  Tensor held[2];
  const tenon_tensor *left = as_tensor(call.args[0]), *right = as_tensor(call.args[1]);
  if (left && right && (!x || x->kind == &kCoo) && (!y || y->kind == &kCoo)) {
    const int32_t to = host->dtype_promote(left->dtype, right->dtype);
    if (x) held[0] = with_exact_sums(scope, call.tensor(0), to);
    if (y) held[1] = with_exact_sums(scope, call.tensor(1), to);
    if (!scope.ok()) return {};
    if (x) x = composed_of(held[0].get());
    if (y) y = composed_of(held[1].get());
  }
  const auto values_of = [&](const Composed& coo, bool is_negative) {
    return is_negative ? run(scope, op::negative, {box(coo.values())}) : coo.values();
  };
  if (x && y) {
    const tenon_tensor* like = as_tensor(call.args[0]);
    if (x->kind != y->kind || shape_of(like) != shape_of(as_tensor(call.args[1])) ||
        axes_of(*x) != axes_of(*y))
      return declined();
    const int32_t dtype = host->dtype_promote(x->values()->dtype, y->values()->dtype);
    const Tensor indices = concatenated(scope, cast_to(scope, x->parts[0], TENON_DTYPE_I64),
                                        cast_to(scope, y->parts[0], TENON_DTYPE_I64), 1);
    const Tensor values = concatenated(scope, cast_to(scope, values_of(*x, false), dtype),
                                       cast_to(scope, values_of(*y, subtracts), dtype), 0);
    return {compose(scope, &kCoo, shape_of(like), {indices, values})};
  }
  // Beside a tensor of all elements: these, and what is stored added to them.
  const uint32_t dense = x ? 1 : 0;
  const tenon_tensor* whole = as_tensor(call.args[dense]);
  if (!whole || shape_of(whole) != shape_of(as_tensor(call.args[1 - dense]))) return declined();
  if (x) {
    const Tensor from = subtracts ? run(scope, op::negative, {call.args[1]}) : call.tensor(1);
    return {added_to(scope, from, *x)};
  }
  tenon_tensor* out = as_tensor(call.outs[0]);
  if (!subtracts) return {added_to(scope, call.tensor(0), *y, out)};
  const Tensor negated = with_values(scope, as_tensor(call.args[1]), values_of(*y, true));
  if (!scope.ok()) return {};
  return {added_to(scope, call.tensor(0), *composed_of(negated.get()), out)};
}

Result sum(Scope& scope, const Call& call) {
  if (call.is_given(1)) return sum_along(scope, call);
  if (call.nargs > 2 && call.args[2].v.i) return declined();
  const Tensor x = with_exact_sums(scope, call.tensor(0), TENON_DTYPE_I64);
  if (!scope.ok()) return {};
  return {run(scope, op::sum, {box(composed_of(x.get())->values())})};
}

Result mean(Scope& scope, const Call& call) {
  const int64_t count = summed_elements(call);
  if (!has_exact_sums(call.composed(0)->values()->dtype) || count == 0) return declined();
  const Result total = sum(scope, call);
  if (total.declines || !scope.ok()) return total;
  return {run(scope, op::divide, {box(total.tensor), boxed(count)})};
}

// Of the sums of equal indices.
Result norm(Scope& scope, const Call& call) {
  if (call.is_given(2) || (call.nargs > 3 && call.args[3].v.i)) return declined();
  if (!(call.args[1].v.f > 0)) return declined();
  const Tensor sums = coalesced(scope, call.tensor(0));
  if (!scope.ok()) return {};
  return {run(scope, op::norm, {box(composed_of(sums.get())->values()), call.args[1]})};
}

constexpr NamedRule kRules[] = {
    {"add", add},         {"subtract", add},  {"matmul", matmul},
    {"sum", sum},         {"mean", mean},     {"norm", norm},
    {"reshape", reshape}, {"concat", concat}, {"zeros_like", zeros_like}};

// Both results of check_finite_and_unscale, of the sums of equal indices: these are what becomes infinite.
tenon_status unscale(const Call& call) {
  if (!call.composed(0) || call.composed(0)->kind != &kCoo || call.composed(1) || call.composed(2))
    return TENON_LAYER_DECLINED;
  Scope scope(call.err);
  const Tensor sums = coalesced(scope, call.tensor(0));
  if (!scope.ok()) return scope.status();
  tenon_value args[] = {box(composed_of(sums.get())->values()), call.args[1], call.args[2]};
  tenon_value outs[] = {kNoValue, call.outs[1]};
  if (!scope.check(host->op_call(call.op, args, 3, outs, 2, call.err))) return scope.status();
  const Tensor unscaled = with_values(scope, sums.get(), Tensor::adopt(as_tensor(outs[0])));
  call.outs[1] = outs[1];
  return scope.ok() ? deliver(call, 0, unscaled) : scope.status();
}

}  // namespace

// The tensor itself, or with the sums of equal indices where a sum of conversions to the dtype is another number.
Tensor with_exact_sums(Scope& scope, const Tensor& x, int32_t dtype) {
  return has_exact_sums(x->dtype) || x->dtype == dtype ? x : distinct(scope, x);
}

// Indices may come from anywhere, and none counts from the end.
Tensor checked_along(Scope& scope, const Composed& coo, int64_t axis, int64_t size) {
  const Tensor along =
      cast_to(scope, run(scope, op::select, {box(coo.parts[0]), boxed(int64_t{0}), boxed(axis)}),
              TENON_DTYPE_I64);
  if (stored_of(coo) == 0) return along;
  const Tensor outside = run(scope, op::logical_or,
                             {box(run(scope, op::less, {box(along), boxed(int64_t{0})})),
                              box(run(scope, op::greater_equal, {box(along), boxed(size)}))});
  if (!read_integer(scope, run(scope, op::any, {box(outside)}))) return along;
  if (!scope.ok()) return {};
  const Tensor first = part_of(scope, run(scope, op::nonzero, {box(outside)}), 0, 1);  // [1, 1]
  const int64_t at = read_integer(scope, first);
  const int64_t index = read_integer(scope, part_of(scope, along, at, at + 1));
  if (scope.ok())
    scope.fail(TENON_OUT_OF_RANGE, "coo: expected indices from 0 to " + std::to_string(size - 1) +
                                       " along axis " + std::to_string(axis) + ", got " +
                                       std::to_string(index) + " at position " +
                                       std::to_string(at));
  return {};
}

Tensor keys_of(Scope& scope, const Composed& coo, const std::vector<int64_t>& shape) {
  Tensor keys;
  for (int64_t axis = 0; axis < axes_of(coo); ++axis) {
    const Tensor along = checked_along(scope, coo, axis, shape[static_cast<size_t>(axis)]);
    keys = !keys ? along
                 : run(scope, op::add,
                       {box(run(scope, op::multiply,
                                {box(keys), boxed(shape[static_cast<size_t>(axis)])})),
                        box(along)});
  }
  return keys;
}

Tensor indices_of(Scope& scope, Tensor keys, int64_t axes, const std::vector<int64_t>& shape) {
  std::vector<Tensor> along(static_cast<size_t>(axes));
  for (int64_t axis = axes - 1; axis >= 0; --axis) {
    const int64_t size = std::max<int64_t>(shape[static_cast<size_t>(axis)], 1);
    along[static_cast<size_t>(axis)] =
        axis == 0 ? keys : run(scope, op::remainder, {box(keys), boxed(size)});
    if (axis > 0) keys = run(scope, op::floor_divide, {box(keys), boxed(size)});
  }
  if (!scope.ok()) return {};
  std::vector<tenon_tensor*> list;
  for (const Tensor& one : along) list.push_back(one.get());
  return run(scope, op::stack, {boxed(list.data(), list.size()), boxed(int64_t{0})});
}

const Kind kCoo = {.struct_size = sizeof(Kind),
                   .layer = -1,
                   .name = "coo",
                   .nparts = 2,
                   .nwords = 0,
                   .values = 1,
                   .part_names = kPartNames,
                   .check = check,
                   .call = call_coo};

tenon_status call_coo(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                      uint32_t nouts, tenon_err* err) {
  const Call call{op, args, nargs, outs, nouts, err};
  if (call.name() == "check_finite_and_unscale") return unscale(call);
  const tenon_status status = run_rule(kRules, call);
  return status == TENON_LAYER_DECLINED ? run_rule(kViewRules, call) : status;
}

Tensor coalesced(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Composed& coo = *composed_of(x.get());
  const std::vector<int64_t> shape = shape_of(x.get());
  const int64_t stored = stored_of(coo);
  if (stored == 0) return x;
  const std::vector<int64_t> sizes(shape.begin(), shape.begin() + axes_of(coo));
  tenon_value args[] = {box(coo.parts[0]), box(sizes)};
  tenon_value outs[] = {kNoValue, kNoValue};
  if (!op::coo_coalesce.run(scope, args, 2, outs, 2)) return {};
  const Tensor distinct = Tensor::adopt(as_tensor(outs[0])),
               group = Tensor::adopt(as_tensor(outs[1]));
  // Each stored element's group, where the elements lie: sums are in the order of storage, and nothing is moved.
  return compose(scope, &kCoo, shape,
                 {distinct, summed(scope, coo.values(), group, distinct->shape[1])});
}

bool is_ascending(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return false;
  const Composed& coo = *composed_of(x.get());
  const int64_t stored = stored_of(coo);
  if (stored == 0) return true;
  const Tensor keys = keys_of(scope, coo, shape_of(x.get()));
  const Tensor falls =
      run(scope, op::greater_equal,
          {box(part_of(scope, keys, 0, stored - 1)), box(part_of(scope, keys, 1, stored))});
  return read_integer(scope, run(scope, op::any, {box(falls)})) == 0;
}

Tensor added_to(Scope& scope, const Tensor& x, const Composed& coo, tenon_tensor* out) {
  if (!scope.ok()) return {};
  const int64_t axes = axes_of(coo);
  const int32_t dtype = host->dtype_promote(x->dtype, coo.values()->dtype);
  if (dtype == TENON_DTYPE_BOOL) {  // a sum is whether any is true
    Composed counts = coo;
    counts.parts[1] = cast_to(scope, coo.values(), TENON_DTYPE_I64);
    return cast_to(scope, added_to(scope, cast_to(scope, x, TENON_DTYPE_I64), counts),
                   TENON_DTYPE_BOOL);
  }
  const bool in_place = out == x.get() && dtype == x->dtype;
  const Tensor to = cast_to(scope, x, dtype), values = cast_to(scope, coo.values(), dtype);
  std::vector<Tensor> along;
  std::vector<tenon_tensor*> handles;
  for (int64_t axis = 0; axis < axes; ++axis) {
    along.push_back(checked_along(scope, coo, axis, x->shape[axis]));
    handles.push_back(along.back().get());
  }
  if (!scope.ok()) return {};
  tenon_value result = in_place ? boxed(out) : kNoValue;
  if (axes == 1) {
    tenon_value args[] = {box(to), box(along[0]), box(values), boxed(int64_t{0})};
    if (!op::index_add.run(scope, args, 4, &result, 1)) return {};
  } else {
    tenon_value args[] = {box(to), boxed(handles.data(), handles.size()), box(values),
                          boxed(int64_t{0}), boxed(true)};
    if (!op::index_put.run(scope, args, 5, &result, 1)) return {};
  }
  return in_place ? Tensor::borrow(out) : Tensor::adopt(as_tensor(result));
}

Tensor coo_to_dense(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  return added_to(scope, filled(scope, shape_of(x.get()), 0, x->dtype, x->device),
                  *composed_of(x.get()));
}

}  // namespace tenon::parts
