// SPDX-License-Identifier: Apache-2.0
// The primitives as ordinary operators: how the host stands in for one that a device lacks, and the
// measure of a device's own kernels.
#include <tenon/primitives.h>

#include "composites/compose.hpp"

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
  return run("primitive_unary", unary::kCalls, args, 1, outs, err);
}
TENON_DECOMPOSE(primitive_binary) {
  return run("primitive_binary", binary::kCalls, args, 2, outs, err);
}
TENON_DECOMPOSE(primitive_compare) {
  return run("primitive_compare", compare::kCalls, args, 2, outs, err);
}

TENON_DECOMPOSE(primitive_select) {
  Scope scope(err);
  return finish(scope, outs, ops::where(scope, args[0], args[1], args[2]));
}

TENON_DECOMPOSE(primitive_reduce) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), result;
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

TENON_DECOMPOSE(primitive_gather) {
  Scope scope(err);
  return finish(scope, outs, ops::index_select(scope, args[0], args[1], 0));
}

TENON_DECOMPOSE(primitive_scatter) {
  Scope scope(err);
  if (int_of(args[3]) == TENON_SCATTER_ADD)
    return finish(scope, outs, ops::index_add(scope, args[0], args[1], args[2], 0));
  if (int_of(args[3]) != TENON_SCATTER_ASSIGN)
    return shapes::fail(err, TENON_UNSUPPORTED, "primitive_scatter",
                        "expected an opcode from 0 to 1, got %lld", ll(int_of(args[3])));
  return finish(scope, outs, ops::index_put(scope, args[0], {operand(scope, args[1])}, args[2]));
}

TENON_DECOMPOSE(primitive_iota) {
  Scope scope(err);
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
