// SPDX-License-Identifier: Apache-2.0
// Kind "ragged": rows of different lengths, one after another. The shape is [rows, longest row, ...]; what is absent is no
// zero, so that elementwise operators act on what is there, whatever they are at 0, and reductions along axis 1 see that alone.
#include "rules.hpp"

#include <tenon/text.hpp>

#include <algorithm>

namespace tenon::parts {
namespace {

constexpr const char* kPartNames[] = {"offsets", "values"};

tenon_status check(int32_t ndim, const int64_t* shape, tenon_tensor* const* parts, const int64_t*,
                   tenon_err* err) {
  const tenon_tensor &offsets = *parts[0], &values = *parts[1];
  if (offsets.ndim != 1 || offsets.dtype < TENON_DTYPE_U8 || offsets.dtype > TENON_DTYPE_I64 ||
      ndim < 2 || offsets.shape[0] != shape[0] + 1)
    return fail(err, TENON_INVALID_ARGUMENT,
                "ragged: expected integer offsets of one more than there are rows, and the shape "
                "[rows, longest row, ...], got " +
                    std::string(host->dtype_name(offsets.dtype)) + " of shape " +
                    shape_text(offsets) + " for shape " + shape_text(ndim, shape));
  if (values.ndim == ndim - 1 && std::equal(shape + 2, shape + ndim, values.shape + 1))
    return TENON_OK;
  return fail(err, TENON_INVALID_ARGUMENT,
              "ragged: expected values [elements of all rows, ...] of a tensor of shape " +
                  shape_text(ndim, shape) + ", got shape " + shape_text(values));
}

const Tensor& offsets_of(const Composed& x) { return x.parts[0]; }
int64_t total_of(const Composed& x) { return x.values()->shape[0]; }

// The row of each element. An error that names the position where the offsets do not ascend from 0 to their number.
Tensor rows_of(Scope& scope, const Composed& x) {
  return run(scope, op::csr_rows, {box(offsets_of(x)), boxed(total_of(x))});
}

Tensor with_offsets(Scope& scope, const Tensor& like, const Tensor& values) {
  if (!scope.ok()) return {};
  std::vector<int64_t> shape = {like->shape[0], like->shape[1]};
  shape.insert(shape.end(), values->shape + 1, values->shape + values->ndim);
  return compose(scope, &kRagged, shape, {offsets_of(*composed_of(like.get())), values});
}

Tensor lengths_of(Scope& scope, const Composed& x, int64_t rows) {
  const Tensor offsets = cast_to(scope, offsets_of(x), TENON_DTYPE_I64);
  const auto part = [&](int64_t begin) {
    return run(scope, op::narrow, {box(offsets), boxed(int64_t{0}), boxed(begin), boxed(rows)});
  };
  return run(scope, op::subtract, {box(part(1)), box(part(0))});
}

bool same_rows(Scope& scope, const Composed& x, const Composed& y) {
  const Tensor &a = offsets_of(x), &b = offsets_of(y);
  if (a.get() == b.get()) return true;
  if (shape_of(a.get()) != shape_of(b.get()) || total_of(x) != total_of(y)) return false;
  const Tensor differs = run(scope, op::any, {box(run(scope, op::not_equal, {box(a), box(b)}))});
  return read_integer(scope, differs) == 0 && scope.ok();
}

// A dense tensor in the place of a ragged one: of trailing axes as it is; of one element for each row the one of that row; of
// all elements those that are there. Empty, with the scope well: it does not fit.
Tensor beside(Scope& scope, const Tensor& like, const Tensor& dense) {
  const Composed& x = *composed_of(like.get());
  if (dense->ndim <= like->ndim - 2) return dense;
  if (dense->ndim != like->ndim) {
    if (dense->ndim != like->ndim - 1 || dense->shape[0] != 1) return {};
    return dense;  // [1, ...]: the same for all elements
  }
  if (dense->shape[1] != 1 && dense->shape[1] != like->shape[1]) return {};
  if (dense->shape[0] != 1 && dense->shape[0] != like->shape[0]) return {};
  const Tensor row = rows_of(scope, x);
  Tensor found = dense;
  if (dense->shape[1] == 1) {
    found = run(scope, op::select, {box(dense), boxed(int64_t{1}), boxed(int64_t{0})});
    return dense->shape[0] == 1 ? found : select_rows(scope, found, row);
  }
  const Tensor begin = select_rows(scope, cast_to(scope, offsets_of(x), TENON_DTYPE_I64), row);
  const Tensor at = run(scope, op::subtract, {box(numbers(scope, total_of(x), row)), box(begin)});
  if (dense->shape[0] == 1)
    return select_rows(
        scope, run(scope, op::select, {box(dense), boxed(int64_t{0}), boxed(int64_t{0})}), at);
  if (!scope.ok()) return {};
  tenon_tensor* both[] = {row.get(), at.get()};
  return run(scope, op::index, {box(dense), boxed(both, 2)});
}

// The call with the values in the place of the whole.
Tensor of_values(Scope& scope, const Call& call, tenon_value* args, const tenon_op* op) {
  if (!scope.ok()) return {};
  tenon_value out = kNoValue;
  if (!scope.check(host->op_call(op, args, call.nargs, &out, 1, scope.err()))) return {};
  return Tensor::adopt(as_tensor(out));
}

tenon_status elementwise(const Call& call) {
  if (call.nargs > 16 || call.nouts != 1) return TENON_LAYER_DECLINED;
  Scope scope(call.err);
  Tensor like;
  for (uint32_t i = 0; i < call.nargs; ++i) {
    const Composed* one = call.composed(i);
    if (!one) continue;
    if (one->kind != &kRagged)
      return refuse(
          call, std::string("beside one of layout ") + one->kind->name + "; use to_dense() first");
    if (like && (like->shape[0] != as_tensor(call.args[i])->shape[0] ||
                 !same_rows(scope, *composed_of(like.get()), *one)))
      return scope.ok() ? refuse(call, "expected tensors whose rows have the same lengths")
                        : scope.status();
    if (!like || as_tensor(call.args[i])->ndim > like->ndim) like = call.tensor(i);
  }
  if (!like) return TENON_LAYER_DECLINED;
  tenon_value args[16];
  std::vector<Tensor> held;
  for (uint32_t i = 0; i < call.nargs; ++i) {
    args[i] = call.args[i];
    const tenon_tensor* tensor = as_tensor(args[i]);
    if (!tensor) continue;
    if (call.composed(i)) {
      if (tensor->ndim != like->ndim)
        return refuse(call, "expected tensors of as many axes; use unsqueeze() on the values");
      held.push_back(call.composed(i)->values());
    } else {
      held.push_back(beside(scope, like, call.tensor(i)));
      if (!scope.ok()) return scope.status();
      if (!held.back())
        return refuse(call, "beside a tensor of shape " + shape_text(*tensor) +
                                "; expected one that broadcasts to " + shape_text(*like.get()));
    }
    args[i] = box(held.back());
  }
  const Tensor values = of_values(scope, call, args, call.op);
  const Tensor result = with_offsets(scope, like, values);
  return scope.ok() ? deliver(call, 0, result) : scope.status();
}

// -- along the ragged axis

Tensor as_columns(Scope& scope, const Tensor& values) {
  if (!scope.ok()) return {};
  int64_t columns = 1;
  for (int32_t i = 1; i < values->ndim; ++i) columns *= values->shape[i];
  return reshaped(scope, values, {values->shape[0], columns});
}
Tensor by_rows(Scope& scope, const Tensor& sums, const Tensor& values, int64_t rows) {
  if (!scope.ok()) return {};
  std::vector<int64_t> shape = shape_of(values.get());
  shape[0] = rows;
  return reshaped(scope, sums, shape);
}

Tensor sums_of_rows(Scope& scope, const Tensor& values, const Tensor& row, int64_t rows) {
  const Tensor sums =
      run(scope, op::segment_add, {box(as_columns(scope, values)), box(row), boxed(rows)});
  return by_rows(scope, sums, values, rows);
}
Tensor extremes_of_rows(Scope& scope, const Tensor& values, const Tensor& row, int64_t rows,
                        bool largest) {
  const Tensor found = run(scope, op::segment_extreme,
                           {box(as_columns(scope, values)), box(row), boxed(rows), boxed(largest)});
  return by_rows(scope, found, values, rows);
}

// An axis of the whole, counted from the front; -1 if it is none.
int64_t axis_of(const tenon_tensor* whole, int64_t axis) {
  if (axis < 0) axis += whole->ndim;
  return axis >= 0 && axis < whole->ndim ? axis : -1;
}

Tensor means_of_rows(Scope& scope, const Composed& x, const Tensor& values, const Tensor& row,
                     int64_t rows) {
  const Tensor sums = sums_of_rows(scope, values, row, rows);
  if (!scope.ok()) return {};
  std::vector<int64_t> shape(static_cast<size_t>(values->ndim), 1);
  shape[0] = rows;
  const Tensor counts =
      reshaped(scope, cast_to(scope, lengths_of(scope, x, rows), values->dtype), shape);
  return run(scope, op::divide, {box(sums), box(counts)});
}

Result reduce(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  const Composed& x = *call.composed(0);
  const tenon_tensor* whole = as_tensor(call.args[0]);
  const int64_t rows = whole->shape[0];
  const bool keeps = call.nargs > 2 && call.args[2].v.i;
  if (!call.is_given(1)) {
    if (keeps) return declined();
    tenon_value args[] = {box(x.values()), kNoValue, boxed(false)};
    return {of_values(scope, call, args, call.op)};
  }
  if (call.args[1].aux != 1) return declined();
  const int64_t axis = axis_of(whole, static_cast<const int64_t*>(call.args[1].v.p)[0]);
  if (axis < 1) return declined();
  if (axis > 1) {
    const int64_t inner[] = {axis - 1};
    tenon_value args[] = {box(x.values()), boxed(inner, 1), boxed(keeps)};
    return {with_offsets(scope, call.tensor(0), of_values(scope, call, args, call.op))};
  }
  const Tensor row = rows_of(scope, x);
  const std::string_view name = call.name();
  Tensor found, values = x.values();
  if (!scope.ok()) return {};
  if (name == "sum") {
    if (values->dtype < TENON_DTYPE_F8E4M3) {
      const bool is_unsigned =
          std::string_view(host->dtype_name(values->dtype)).starts_with("uint");
      values = cast_to(scope, values, is_unsigned ? TENON_DTYPE_U64 : TENON_DTYPE_I64);
    }
    found = sums_of_rows(scope, values, row, rows);
  } else if (name == "mean") {
    if (values->dtype < TENON_DTYPE_F8E4M3) values = cast_to(scope, values, TENON_DTYPE_F32);
    found = means_of_rows(scope, x, values, row, rows);
  } else {
    const Tensor lengths = lengths_of(scope, x, rows);
    const Tensor is_empty = run(scope, op::equal, {box(lengths), boxed(int64_t{0})});
    if (read_integer(scope, run(scope, op::any, {box(is_empty)}))) {
      scope.fail(TENON_INVALID_ARGUMENT, "[" + std::string(name) +
                                             "] along axis 1 of layout ragged: expected rows of at "
                                             "least one element, got a row without any");
      return {};
    }
    found = extremes_of_rows(scope, values, row, rows, name == "max");
  }
  if (!keeps) return {found};
  return {run(scope, op::unsqueeze, {box(found), boxed(int64_t{1})})};
}

Result softmax(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  const Composed& x = *call.composed(0);
  const Tensor whole = call.tensor(0);
  const int64_t axis = axis_of(whole.get(), call.args[1].v.i);
  if (axis < 1) return declined();
  if (axis > 1) {
    tenon_value args[] = {box(x.values()), boxed(axis - 1)};
    return {with_offsets(scope, whole, of_values(scope, call, args, call.op))};
  }
  const bool is_whole = x.values()->dtype < TENON_DTYPE_F8E4M3;
  const Tensor values = is_whole ? cast_to(scope, x.values(), TENON_DTYPE_F32) : x.values();
  return {
      with_offsets(scope, whole,
                   run(scope, op::csr_softmax,
                       {box(offsets_of(x)), box(values), boxed(call.name() == "log_softmax")}))};
}

// -- along the axes of an element

// The operator sees elements with their axes, one after another: products with a matrix, normalisation.
Result each_element(Scope& scope, const Call& call) {
  if (!call.composed(0) || call.nargs > 16) return declined();
  for (uint32_t i = 1; i < call.nargs; ++i)
    if (call.composed(i)) return declined();
  const Tensor whole = call.tensor(0);
  const tenon_tensor* second = as_tensor(call.args[1]);
  const std::string_view name = call.name();
  if (whole->ndim < 3 || (name == "matmul" && second->ndim != 2)) return declined();
  if (name == "layer_norm" && call.args[3].v.i > whole->ndim - 2) return declined();
  tenon_value args[16];
  std::copy_n(call.args, call.nargs, args);
  args[0] = box(call.composed(0)->values());
  return {with_offsets(scope, whole, of_values(scope, call, args, call.op))};
}

// As many elements in the same rows.
Result like_values(Scope& scope, const Call& call) {
  if (!call.composed(0) || call.nargs > 16) return declined();
  tenon_value args[16];
  std::copy_n(call.args, call.nargs, args);
  args[0] = box(call.composed(0)->values());
  return {with_offsets(scope, call.tensor(0), of_values(scope, call, args, call.op))};
}

Result embedding(Scope& scope, const Call& call) {
  if (call.composed(0) || !call.composed(1)) return declined();
  tenon_value args[8];
  std::copy_n(call.args, call.nargs, args);
  args[1] = box(call.composed(1)->values());
  return {with_offsets(scope, call.tensor(1), of_values(scope, call, args, call.op))};
}

// -- shapes

Result select(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  const Composed& x = *call.composed(0);
  const tenon_tensor* whole = as_tensor(call.args[0]);
  const int64_t axis = axis_of(whole, call.args[1].v.i);
  int64_t index = call.args[2].v.i;
  if (axis > 1) {
    tenon_value args[] = {box(x.values()), boxed(axis - 1), boxed(index)};
    return {with_offsets(scope, call.tensor(0), of_values(scope, call, args, call.op))};
  }
  if (axis != 0) return declined();
  if (index < 0) index += whole->shape[0];
  if (index < 0 || index >= whole->shape[0]) {
    scope.fail(TENON_OUT_OF_RANGE, "[select] expected a row from 0 to " +
                                       std::to_string(whole->shape[0] - 1) + ", got " +
                                       std::to_string(call.args[2].v.i));
    return {};
  }
  rows_of(scope, x);  // checks
  const auto at = [&](int64_t i) {
    return read_integer(scope,
                        run(scope, op::narrow,
                            {box(offsets_of(x)), boxed(int64_t{0}), boxed(i), boxed(int64_t{1})}));
  };
  const int64_t begin = at(index), end = at(index + 1);
  return {run(scope, op::narrow,
              {box(x.values()), boxed(int64_t{0}), boxed(begin), boxed(end - begin)})};
}

// Of the axes behind the ragged one.
Result reshape(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  const Tensor whole = call.tensor(0);
  const auto* shape = static_cast<const int64_t*>(call.args[1].v.p);
  const uint64_t count = call.args[1].aux;
  if (count < 2 || shape[0] != whole->shape[0] || shape[1] != whole->shape[1]) return declined();
  std::vector<int64_t> inner = {total_of(*call.composed(0))};
  inner.insert(inner.end(), shape + 2, shape + count);
  if (inner[0] == 0 && std::ranges::find(inner, -1) != inner.end()) return declined();
  return {with_offsets(scope, whole, reshaped(scope, call.composed(0)->values(), inner))};
}

constexpr NamedRule kRules[] = {{"sum", reduce},
                                {"mean", reduce},
                                {"max", reduce},
                                {"min", reduce},
                                {"softmax", softmax},
                                {"log_softmax", softmax},
                                {"matmul", each_element},
                                {"linear", each_element},
                                {"layer_norm", each_element},
                                {"embedding", embedding},
                                {"select", select},
                                {"reshape", reshape},
                                {"zeros_like", like_values},
                                {"ones_like", like_values},
                                {"full_like", like_values},
                                {"dropout", like_values}};

// -- joining

Result concat(Scope& scope, const Call& call) {
  auto* list = static_cast<tenon_tensor* const*>(call.args[0].v.p);
  const uint64_t count = call.args[0].aux;
  std::vector<const Composed*> all;
  for (uint64_t i = 0; i < count; ++i) {
    const Composed* one = composed_of(list[i]);
    if (!one || one->kind != &kRagged || list[i]->ndim != list[0]->ndim) return declined();
    all.push_back(one);
  }
  const int64_t axis = axis_of(list[0], call.args[1].v.i);
  const Tensor first = Tensor::borrow(list[0]);
  std::vector<tenon_tensor*> values;
  for (const Composed* one : all) values.push_back(one->values().get());
  const auto joined = [&](const std::vector<tenon_tensor*>& some, int64_t along) {
    return run(scope, op::concat, {boxed(some.data(), some.size()), boxed(along)});
  };
  if (axis > 1) {
    for (const Composed* one : all)
      if (!same_rows(scope, *all[0], *one)) return declined();
    return {with_offsets(scope, first, joined(values, axis - 1))};
  }
  if (axis < 0) return declined();
  const Tensor elements = joined(values, 0);
  std::vector<int64_t> shape = shape_of(list[0]);
  std::vector<Tensor> held;
  std::vector<tenon_tensor*> parts;
  if (axis == 1) {
    // Rows one after another: a stable sort of all elements by their rows.
    for (uint64_t i = 0; i < count; ++i) {
      if (list[i]->shape[0] != shape[0]) return declined();
      held.push_back(rows_of(scope, *all[i]));
      parts.push_back(held.back().get());
    }
    if (!scope.ok()) return {};
    const Tensor row = joined(parts, 0);
    const Tensor order = run(scope, op::csr_order, {box(row), boxed(shape[0])});
    const Tensor sorted = select_rows(scope, row, order);
    const Tensor offsets =
        run(scope, op::searchsorted, {box(sorted), box(numbers(scope, shape[0] + 1, row))});
    if (!scope.ok()) return {};
    shape[1] = 0;
    if (shape[0] > 0) {
      const auto part = [&](int64_t begin) {
        return run(scope, op::narrow,
                   {box(offsets), boxed(int64_t{0}), boxed(begin), boxed(shape[0])});
      };
      const Tensor lengths = run(scope, op::subtract, {box(part(1)), box(part(0))});
      shape[1] = read_integer(scope, run(scope, op::max, {box(lengths)}));
    }
    return {compose(scope, &kRagged, shape, {offsets, select_rows(scope, elements, order)})};
  }
  int64_t before = 0, rows = 0;
  for (uint64_t i = 0; i < count; ++i) {
    rows_of(scope, *all[i]);  // checks
    const Tensor own = cast_to(scope, offsets_of(*all[i]), TENON_DTYPE_I64);
    const int64_t from = i == 0 ? 0 : 1;
    const Tensor part =
        run(scope, op::narrow,
            {box(own), boxed(int64_t{0}), boxed(from), boxed(list[i]->shape[0] + 1 - from)});
    held.push_back(run(scope, op::add, {box(part), boxed(before)}));
    if (!scope.ok()) return {};
    parts.push_back(held.back().get());
    before += total_of(*all[i]);
    rows += list[i]->shape[0];
    shape[1] = std::max(shape[1], list[i]->shape[1]);
  }
  shape[0] = rows;
  return {compose(scope, &kRagged, shape, {joined(parts, 0), elements})};
}

constexpr NamedRule kListRules[] = {{"concat", concat}};

}  // namespace

const Kind kRagged = {.struct_size = sizeof(Kind),
                      .layer = -1,
                      .name = "ragged",
                      .nparts = 2,
                      .nwords = 0,
                      .values = 1,
                      .part_names = kPartNames,
                      .check = check,
                      .call = call_ragged};

tenon_status call_ragged(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                         uint32_t nouts, tenon_err* err) {
  const Call call{op, args, nargs, outs, nouts, err};
  if (nargs > 0 && args[0].tag == TENON_VALUE_TENSORS) return run_rule(kListRules, call);
  if (call.def().flags & TENON_OP_ELEMENTWISE) return elementwise(call);
  return run_rule(kRules, call);
}

// With zeros where nothing is.
Tensor ragged_to_dense(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Composed& ragged = *composed_of(x.get());
  const Tensor row = rows_of(scope, ragged);
  const Tensor begin = select_rows(scope, cast_to(scope, offsets_of(ragged), TENON_DTYPE_I64), row);
  const Tensor at =
      run(scope, op::subtract, {box(numbers(scope, total_of(ragged), row)), box(begin)});
  if (!scope.ok()) return {};
  tenon_tensor* both[] = {row.get(), at.get()};
  const Tensor zeros = filled(scope, shape_of(x.get()), 0, x->dtype, x->device);
  return run(scope, op::index_put,
             {box(zeros), boxed(both, 2), box(ragged.values()), boxed(int64_t{0}), boxed(false)});
}

}  // namespace tenon::parts
