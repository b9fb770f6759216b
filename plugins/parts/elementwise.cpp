// SPDX-License-Identifier: Apache-2.0
// Elementwise operators, by asking the operator: where the elements that are not stored, zeros, give zero, the stored ones
// are all there is to compute. What is not linear needs the sum of elements with equal indices first.
#include "rules.hpp"

#include <algorithm>

namespace tenon::parts {
namespace {

// f(a) + f(b) is f(a + b), whatever numbers are beside.
constexpr std::string_view kLinear[] = {"negative", "positive", "multiply",
                                        "divide",   "real",     "conj"};

// The call with other tensors in the place of composed ones.
struct Replaced {
  tenon_value args[32];
  std::vector<Tensor> held;
};

template <class F>
bool replace_composed(const Call& call, Replaced& replaced, F&& f) {
  if (call.nargs > 32) return false;
  std::copy_n(call.args, call.nargs, replaced.args);
  for (uint32_t i = 0; i < call.nargs; ++i) {
    if (!call.composed(i)) continue;
    replaced.held.push_back(f(i));
    replaced.args[i] = box(replaced.held.back());
  }
  return true;
}

bool same_structure(const Composed& a, const Composed& b) {
  if (a.kind != b.kind) return false;
  for (uint32_t i = 0; i < a.kind->nparts; ++i)
    if (i != a.kind->values && a.parts[i].get() != b.parts[i].get()) return false;
  return true;
}

// A tensor times a number, or divided by one, is what most programs do: no more than that is looked at. Empty, with the
// scope well: it is another call.
Tensor times_number(Scope& scope, const Call& call) {
  static const tenon_op *multiply = host->op_find("tenon::multiply"),
                        *divide = host->op_find("tenon::divide");
  const Composed* x = call.composed(0);
  if ((call.op != multiply && call.op != divide) || !x || !call.is_number(1)) return {};
  if (!has_exact_sums(x->values()->dtype)) return {};
  tenon_value args[] = {box(x->values()), call.args[1]}, out = kNoValue;
  if (!scope.check(host->op_call(call.op, args, 2, &out, 1, call.err))) return {};
  return with_values(scope, as_tensor(call.args[0]), Tensor::adopt(as_tensor(out)));
}

}  // namespace

bool is_zero_at_zero(Scope& scope, const Call& call) {
  const tenon_device_id host_device = host->device_host();
  Replaced zeros;
  if (!replace_composed(call, zeros, [&](uint32_t i) {
        return filled(scope, {}, 0, as_tensor(call.args[i])->dtype, host_device);
      }))
    return false;
  for (uint32_t i = 0; i < call.nargs; ++i) {
    const tenon_tensor* beside = as_tensor(zeros.args[i]);
    if (!beside || beside->device == host_device) continue;
    zeros.held.push_back(
        run(scope, op::copy_to_device,
            {zeros.args[i], boxed_device(host_device), boxed_device(beside->device)}));
    zeros.args[i] = box(zeros.held.back());
  }
  if (!scope.ok()) return false;
  tenon_value out = kNoValue;
  if (!scope.check(host->op_call(call.op, zeros.args, call.nargs, &out, 1, scope.err())))
    return false;
  const Tensor at_zero = Tensor::adopt(as_tensor(out));
  return read_integer(scope, run(scope, op::equal, {box(at_zero), boxed(int64_t{0})})) == 1;
}

tenon_status call_with_number(const Call& call) {
  Scope scope(call.err);
  Tensor result = times_number(scope, call);
  if (!scope.ok()) return scope.status();
  return result ? deliver(call, 0, std::move(result)) : TENON_LAYER_DECLINED;
}

tenon_status call_elementwise(const Call& call) {
  if (!(call.def().flags & TENON_OP_ELEMENTWISE) || call.nouts != 1) return TENON_LAYER_DECLINED;
  bool is_linear = std::ranges::find(kLinear, call.name()) != std::end(kLinear);
  Call changed = call;
  Replaced sorted, values;
  Scope scope(call.err);
  const Composed* first = nullptr;
  uint32_t count = 0;
  for (uint32_t i = 0; i < call.nargs; ++i) {
    const Composed* composed = call.composed(i);
    const tenon_tensor* tensor = as_tensor(call.args[i]);
    const bool is_dense = !composed && tensor && tensor->ndim > 0;
    if (is_dense || (composed && first && !same_structure(*first, *composed))) {
      const tenon_status status = call_two(call);
      if (status != TENON_LAYER_DECLINED) return status;
      return refuse(call, "beside a tensor of all elements; use to_dense() first");
    }
    if (composed) first = composed, ++count;
  }
  if (!first) return TENON_LAYER_DECLINED;
  // Of two sparse tensors neither a product nor a quotient is linear, and 0 / 0 is NaN.
  const bool is_product = call.name() == "multiply" && count > 1;
  is_linear &= count < 2 || is_product;
  is_linear &= has_exact_sums(first->values()->dtype);
  if (!is_linear || is_product) {
    if (!replace_composed(call, sorted,
                          [&](uint32_t i) { return distinct(scope, call.tensor(i)); }))
      return TENON_LAYER_DECLINED;
    if (!scope.ok()) return scope.status();
    changed.args = sorted.args;
  }
  // A product with a number is zero where there is nothing: no NaN or infinity reaches that.
  if (!is_linear && !is_zero_at_zero(scope, changed)) {
    if (!scope.ok()) return scope.status();
    return refuse(call,
                  "its value at 0 is not 0, so that the result would have all elements; use "
                  "to_dense() first, or sparse.map for the stored elements");
  }
  if (is_linear && call.name() == "divide" && !changed.composed(0))
    return refuse(call, "division by elements that are not stored; use to_dense() first");
  uint32_t where = 0;
  while (!changed.composed(where)) ++where;
  const tenon_tensor* like = as_tensor(changed.args[where]);
  if (!replace_composed(changed, values, [&](uint32_t i) { return changed.composed(i)->values(); }))
    return TENON_LAYER_DECLINED;
  if (!scope.ok()) return scope.status();
  tenon_value out = kNoValue;
  if (!scope.check(host->op_call(call.op, values.args, call.nargs, &out, 1, call.err)))
    return scope.status();
  const Tensor result = with_values(scope, like, Tensor::adopt(as_tensor(out)));
  return scope.ok() ? deliver(call, 0, result) : scope.status();
}

}  // namespace tenon::parts
