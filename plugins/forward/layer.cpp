// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <tenon/error.hpp>

#include <algorithm>

#include "operators.hpp"
#include "rules.hpp"
#include "tangents.hpp"

namespace tenon::forward {
namespace {

template <class Visit>
void for_each_tensor(const tenon_value* values, uint32_t count, Visit&& visit) {
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i].tag == TENON_VALUE_TENSOR) visit(static_cast<tenon_tensor*>(values[i].v.p));
    if (values[i].tag != TENON_VALUE_TENSORS) continue;
    auto* list = static_cast<tenon_tensor* const*>(values[i].v.p);
    for (uint32_t k = 0; k < values[i].aux; ++k)
      if (list[k]) visit(list[k]);
  }
}

struct Operation {
  const tenon_op* op;
  tenon_value* args;
  uint32_t nargs;
  uint32_t nouts;
};

// The innermost of the first `active` levels that know of a tensor of the call, counted from 1; 0: none.
size_t level_of(const Operation& call, const tenon_value* outs, size_t active) {
  const std::vector<uint64_t>& levels = thread_state().levels;
  size_t found = 0;
  const auto look = [&](const tenon_tensor* x) {
    for (size_t n = active; n > found; --n)
      if (is_known(x, levels[n - 1])) found = n;
  };
  for_each_tensor(call.args, call.nargs, look);
  for_each_tensor(outs, call.nouts, look);
  return found;
}

void call_at(const Operation& call, tenon_value* outs, size_t active);

// The call without the level that it depends on, and the tangents of its results there. Results are made.
ResultTangents call_dual(const Operation& call, tenon_value* outs, size_t level) {
  const uint64_t number = thread_state().levels[level - 1];
  ArgumentTangents tangents(call.nargs);
  bool has_any = false;
  for (uint32_t i = 0; i < call.nargs; ++i)
    for_each_tensor(call.args + i, 1, [&](tenon_tensor* x) {
      Within outer(level - 1);
      tangents[i].push_back(tangent_of(x, number));
      has_any |= static_cast<bool>(tangents[i].back());
    });
  call_at(call, outs, level - 1);
  if (!has_any) return {std::vector<Tensor>(call.nouts)};
  if (rules->has_saved_hooks())
    throw Error(TENON_UNSUPPORTED,
                "forward mode: tensors that are saved for backward are kept in another form here");
  Within outer(level - 1);
  return result_tangents({call.op, call.args, call.nargs, outs, call.nouts}, tangents);
}

struct Results {
  explicit Results(uint32_t count) : values(count, kNoValue) {}
  ~Results() {
    for_each_tensor(values.data(), static_cast<uint32_t>(values.size()),
                    [](tenon_tensor* x) { host->tensor_release(x); });
  }
  Results(const Results&) = delete;
  std::vector<tenon_value> values;
};

// Write a result, and its tangent, into the tensor that the caller gave.
void write(tenon_tensor* out, tenon_tensor* result, const Tensor& tangent, size_t level) {
  const uint64_t number = thread_state().levels[level - 1];
  const bool shows_a_part = host->tensor_base(out) != nullptr;
  if (shows_a_part && (tangent || is_known(out, number)))
    throw Error(TENON_UNSUPPORTED,
                "forward mode: a call writes into a part of a tensor whose derivative is wanted");
  {
    Within outer(level - 1);
    copy_into(out, Tensor::borrow(result));
  }
  // A part that the level does not know of shows what its base gets.
  if (!shows_a_part) set_tangent(out, number, tangent ? formed_as(tangent, out) : Tensor());
}

void call_at(const Operation& call, tenon_value* outs, size_t active) {
  const size_t level = level_of(call, outs, active);
  if (level == 0) {
    Within outer(active);
    ErrorSink err;
    err.check(
        host->op_call_below(place.layer, call.op, call.args, call.nargs, outs, call.nouts, err));
    return;
  }
  Results fresh(call.nouts);
  const auto [tangents, unknown] = call_dual(call, fresh.values.data(), level);
  const uint64_t number = thread_state().levels[level - 1];
  for (uint32_t k = 0; k < call.nouts; ++k) {
    if (fresh.values[k].tag != TENON_VALUE_TENSOR) continue;
    auto* result = static_cast<tenon_tensor*>(fresh.values[k].v.p);
    const bool is_given = outs[k].tag == TENON_VALUE_TENSOR;
    tenon_tensor* out = is_given ? static_cast<tenon_tensor*>(outs[k].v.p) : result;
    if (is_given)
      write(out, result, tangents[k], level);
    else
      outs[k] = std::exchange(fresh.values[k], kNoValue);
    const bool is_unknown = unknown >> k & 1;
    if (is_unknown)
      set_unknown(out, number);
    else if (!is_given)
      set_tangent(out, number, tangents[k]);
    if (is_unknown || tangents[k]) rules->update_stand_ins(out);
  }
}

// A new view that no gradient passes. Stops tangents, too, also those that its memory gets later.
bool makes_constant(const Operation& call, const tenon_value* outs) {
  constexpr uint32_t kStops = TENON_OP_VIEW | TENON_OP_NO_GRAD;
  return (host->op_def(call.op)->flags & kStops) == kStops && outs[0].tag == TENON_VALUE_NONE;
}

void make_constant(const tenon_value* outs, uint32_t nouts, size_t active) {
  for_each_tensor(outs, nouts, [&](tenon_tensor* out) {
    if (!host->tensor_base(out)) return;
    for (size_t n = 0; n < active; ++n) set_tangent(out, thread_state().levels[n], {});
  });
}

}  // namespace

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err) {
  const Operation call{op, args, nargs, nouts};
  const size_t active = thread_state().active;
  const bool stops = makes_constant(call, outs);
  if (!stops && level_of(call, outs, active) == 0)
    return host->op_call_below(place.layer, op, args, nargs, outs, nouts, err);
  return guarded(err, [&] {
    call_at(call, outs, active);
    if (stops) make_constant(outs, nouts, active);
  });
}

}  // namespace tenon::forward
