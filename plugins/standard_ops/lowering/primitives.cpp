// SPDX-License-Identifier: Apache-2.0
// What a primitive is made of. On the host, ordinary operators: how it stands in for a device that lacks one, and the
// measure of a device's own kernels. On a device, other opcodes and primitives, where they suffice; the host stands in
// where this says TENON_UNSUPPORTED.
#include <tenon/primitives.h>

#include "lowering/elements.hpp"

namespace tenon::standard_ops {
namespace {

using Call = tenon_status (*)(tenon_value* args, uint32_t nargs, tenon_value* out, tenon_err* err);

template <class Name>
tenon_status call_named(tenon_value* args, uint32_t nargs, tenon_value* out, tenon_err* err) {
  static call::Operator op(Name::text);
  Scope scope(err);
  op.run(scope, args, nargs, out, 1);
  return scope.status();
}

#define TENON_NAMED(number, NAME, op, dtypes) \
  struct NAME##_ {                            \
    static constexpr const char* text = #op;  \
  };
#define TENON_CALL(number, NAME, op, dtypes) &call_named<NAME##_>,
namespace unary {
TENON_UNARY_OPS(TENON_NAMED)
constexpr Call kCalls[] = {TENON_UNARY_OPS(TENON_CALL)};
}  // namespace unary
namespace binary {
TENON_BINARY_OPS(TENON_NAMED)
constexpr Call kCalls[] = {TENON_BINARY_OPS(TENON_CALL)};
}  // namespace binary
namespace compare {
TENON_COMPARE_OPS(TENON_NAMED)
constexpr Call kCalls[] = {TENON_COMPARE_OPS(TENON_CALL)};
}  // namespace compare
#undef TENON_NAMED
#undef TENON_CALL

bool is_on_device(const tenon_value& x) {
  return x.tag == TENON_VALUE_TENSOR &&
         TENON_DEVICE_KIND(tensor_of(x).device) != TENON_DEVICE_KIND(host->device_host());
}

// Nothing makes numbers on a device but its own kernel.
bool is_made_on_device(const tenon_value& device) {
  return !is_none(device) && TENON_DEVICE_KIND(static_cast<tenon_device_id>(int_of(device))) !=
                                 TENON_DEVICE_KIND(host->device_host());
}

// Elementwise operands of a device, in one dtype, expanded to one shape; none where the host runs the call.
std::vector<Elements> device_operands(Scope& scope, const tenon_value* args, uint32_t count) {
  const tenon_value* first = std::find_if(args, args + count, is_on_device);
  if (first == args + count) return {};
  const tenon_tensor& like = tensor_of(*first);
  Shape shape;
  for (const tenon_value* arg = args; arg < args + count; ++arg) {
    if (arg->tag != TENON_VALUE_TENSOR) continue;
    const Shape other = to_vector(shape_of(tensor_of(*arg)));
    if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (size_t i = 0; i < other.size(); ++i)
      if (other[i] != 1) shape[shape.size() - other.size() + i] = other[i];
  }
  std::vector<Elements> operands;
  for (const tenon_value* arg = args; arg < args + count; ++arg) {
    const Tensor x = arg->tag == TENON_VALUE_TENSOR
                         ? Tensor::borrow(&tensor_of(*arg))
                         : primitive::full(scope, {}, lowering::number_for(*arg, like.dtype),
                                           like.dtype, static_cast<int32_t>(like.device));
    operands.emplace_back(
        scope, scope.ok() && sizes_of(x) != shape ? primitive::expand(scope, x, shape) : x);
  }
  return operands;
}

tenon_status finish_derived(const Scope& scope, const char* name, const Derived& derived,
                            tenon_value* outs, tenon_err* err) {
  if (scope.ok() && !derived)
    return shapes::fail(err, TENON_UNSUPPORTED, name,
                        "the device has no kernel for it, and nothing of which it could be made");
  return finish(scope, outs, derived ? derived->tensor() : Tensor());
}

template <size_t N>
tenon_status run(const char* name, const Call (&calls)[N], const tenon_value* args, uint32_t nargs,
                 tenon_value* outs, tenon_err* err) {
  int64_t opcode = int_of(args[nargs]);
  if (opcode < 0 || opcode >= static_cast<int64_t>(N))
    return shapes::fail(err, TENON_UNSUPPORTED, name, "expected an opcode from 0 to %zu, got %lld",
                        N - 1, ll(opcode));
  tenon_value values[2] = {args[0], nargs > 1 ? args[1] : kNoValue};
  return calls[opcode](values, nargs, outs, err);
}

}  // namespace

// An output that was given is written directly: nothing else can write strided memory.
TENON_DECOMPOSE(primitive_copy) {
  static call::Operator cast("cast");
  tenon_value values[] = {args[0], args[1]};
  Scope scope(err);
  cast.run(scope, values, 2, outs, 1);
  return scope.status();
}

TENON_DECOMPOSE(primitive_unary) {
  Scope scope(err);
  if (const auto x = device_operands(scope, args, 1); !x.empty())
    return finish_derived(scope, "primitive_unary", derived_unary(int_of(args[1]), x[0]), outs,
                          err);
  return run("primitive_unary", unary::kCalls, args, 1, outs, err);
}
TENON_DECOMPOSE(primitive_binary) {
  Scope scope(err);
  if (const auto x = device_operands(scope, args, 2); !x.empty())
    return finish_derived(scope, "primitive_binary", derived_binary(int_of(args[2]), x[0], x[1]),
                          outs, err);
  return run("primitive_binary", binary::kCalls, args, 2, outs, err);
}
TENON_DECOMPOSE(primitive_compare) {
  Scope scope(err);
  if (const auto x = device_operands(scope, args, 2); !x.empty())
    return finish_derived(scope, "primitive_compare", derived_compare(int_of(args[2]), x[0], x[1]),
                          outs, err);
  return run("primitive_compare", compare::kCalls, args, 2, outs, err);
}

TENON_DECOMPOSE(primitive_select) {
  Scope scope(err);
  if (is_on_device(args[0])) {
    const auto x = device_operands(scope, args + 1, 2);
    const Elements condition(scope, operand(scope, args[0]));
    const bool is_served = !x.empty() && x[0].dtype() == x[1].dtype();
    return finish_derived(scope, "primitive_select",
                          is_served ? derived_select(condition, x[0], x[1]) : Derived(), outs, err);
  }
  return finish(scope, outs, ops::where(scope, args[0], args[1], args[2]));
}

TENON_DECOMPOSE(primitive_reduce) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), result;
  if (is_on_device(args[0]))
    return finish_derived(scope, "primitive_reduce", derived_reduce(int_of(args[1]), {scope, x}),
                          outs, err);
  switch (int_of(args[1])) {
    case TENON_REDUCTION_SUM:
      result = ops::sum(scope, x, 1);
      break;
    case TENON_REDUCTION_PROD:
      result = ops::prod(scope, x, 1);
      break;
    case TENON_REDUCTION_MAX:
      result = ops::max(scope, x, 1);
      break;
    case TENON_REDUCTION_MIN:
      result = ops::min(scope, x, 1);
      break;
    default:
      return shapes::fail(err, TENON_UNSUPPORTED, "primitive_reduce",
                          "expected an opcode from 0 to 3, got %lld", ll(int_of(args[1])));
  }
  if (scope.ok() && result->dtype != x->dtype) result = ops::cast(scope, result, x->dtype);
  return finish(scope, outs, result);
}

TENON_DECOMPOSE(primitive_contract) {
  Scope scope(err);
  if (is_on_device(args[0])) {
    const Elements x(scope, operand(scope, args[0])), y(scope, operand(scope, args[1]));
    return finish_derived(scope, "primitive_contract", derived_contract(x, y), outs, err);
  }
  return finish(scope, outs, ops::matmul(scope, args[0], args[1]));
}

TENON_DECOMPOSE(primitive_gather) {
  Scope scope(err);
  if (is_on_device(args[0])) {
    const Elements x(scope, operand(scope, args[0])), index(scope, operand(scope, args[1]));
    return finish_derived(scope, "primitive_gather", derived_gather(x, index), outs, err);
  }
  return finish(scope, outs, ops::index_select(scope, args[0], args[1], 0));
}

TENON_DECOMPOSE(primitive_scatter) {
  Scope scope(err);
  if (is_on_device(args[0])) {
    const Elements x(scope, operand(scope, args[0])), index(scope, operand(scope, args[1])),
        source(scope, operand(scope, args[2]));
    return finish_derived(scope, "primitive_scatter",
                          derived_scatter(int_of(args[3]), x, index, source), outs, err);
  }
  if (int_of(args[3]) == TENON_SCATTER_ADD)
    return finish(scope, outs, ops::index_add(scope, args[0], args[1], args[2], 0));
  if (int_of(args[3]) != TENON_SCATTER_ASSIGN)
    return shapes::fail(err, TENON_UNSUPPORTED, "primitive_scatter",
                        "expected an opcode from 0 to 1, got %lld", ll(int_of(args[3])));
  return finish(scope, outs, ops::index_put(scope, args[0], {operand(scope, args[1])}, args[2]));
}

TENON_DECOMPOSE(primitive_iota) {
  Scope scope(err);
  if (is_made_on_device(args[4])) return finish_derived(scope, "primitive_iota", {}, outs, err);
  auto device = is_none(args[4]) ? -1 : static_cast<int32_t>(int_of(args[4]));
  Tensor counts = ops::arange(scope, int_of(args[0]), std::nullopt, 1, TENON_DTYPE_I64, device);
  if (args[1].tag == TENON_VALUE_FLOAT || args[2].tag == TENON_VALUE_FLOAT)
    counts = ops::cast(scope, counts, TENON_DTYPE_F64);
  Tensor numbers = ops::add(scope, ops::multiply(scope, counts, args[2]), args[1]);
  return finish(scope, outs, ops::cast(scope, numbers, static_cast<int32_t>(int_of(args[3]))));
}

// Numbers drawn from all of int64 but its largest are 64 random bits, less one: the high half of
// bits * (2^64 - 1).
TENON_DECOMPOSE(primitive_random) {
  Scope scope(err);
  if (is_made_on_device(args[1])) return finish_derived(scope, "primitive_random", {}, outs, err);
  int64_t count = int_of(args[0]), pairs = (count + 1) / 2;
  auto device = is_none(args[1]) ? -1 : static_cast<int32_t>(int_of(args[1]));
  Tensor drawn = ops::randint(scope, INT64_MIN, INT64_MAX, {pairs}, TENON_DTYPE_I64, device);
  Tensor bits = ops::bitwise_xor(scope, ops::add(scope, drawn, 1), INT64_MIN);
  constexpr int64_t kLow = 0xffffffff;
  Tensor low = ops::bitwise_and(scope, bits, kLow);
  Tensor high = ops::bitwise_and(scope, ops::bitwise_right_shift(scope, bits, 32), kLow);
  Tensor words = ops::reshape(scope, ops::stack(scope, {low, high}, 1), {-1});
  return finish(scope, outs, ops::clone(scope, ops::narrow(scope, words, 0, 0, count)));
}

}  // namespace tenon::standard_ops
