// SPDX-License-Identifier: Apache-2.0
// Kernels that compute each element from the same element of the inputs. Tables of expressions come
// from tenon-codegen (`kernel-c`); the loops around them are here, for any strides and broadcasting.
#pragma once

#include "source.hpp"
#include "table.hpp"

#include <tenon/unbox.h>

namespace tenon::kernel_c {

inline constexpr uint32_t kElementwiseTraits =
    kAnyStrides | TENON_KERNEL_BROADCAST | TENON_KERNEL_HOST_SCALARS;

// Called e_<name> in expressions. Its type is T, or that of its own dtype.
struct ElementwiseInput {
  const char* name;
  bool own_dtype;
};

struct ElementwiseCase {
  uint64_t dtype_mask;
  const char* expression;
  uint32_t nvalues;  // v0, v1, ... : numbers that depend on attributes alone
  const char* types[4];
  void (*values)(const tenon_value* attributes, tenon_value* out);
};

struct ElementwiseOp {
  const char* op;
  uint32_t ninputs;      // the first parameters
  uint32_t dtype_input;  // the one whose dtype is T's
  const ElementwiseInput* inputs;
  uint64_t ncases;
  const ElementwiseCase* cases;
};

tenon_status run_elementwise(const ElementwiseOp& op, tenon_ctx* ctx, const tenon_value* args,
                             tenon_value* outs, tenon_err* err);

// The engine. `statements` assign r0, r1, ... (of the outputs' types) from e_<name> and v0...
struct ElementwiseProgram {
  const void* family;  // what the program is cached under, with the dtypes and layouts
  std::string_view name;
  const ElementwiseInput* inputs;
  uint32_t ninputs, nouts, nvalues;
  const char* const* types;  // of the values
  std::string_view statements;
  bool is_expression = false;  // `statements` is the value of r0
  bool only_moves = false;     // elements are copied, so that any dtype will do
};
inline constexpr uint32_t kMostInputs = 4, kMostOutputs = 3;

tenon_status run_elementwise_program(const ElementwiseProgram& program, int dtype, tenon_ctx* ctx,
                                     const tenon_tensor* const* inputs, tenon_tensor* const* outs,
                                     const tenon_value* values, tenon_err* err);

// For generated code: a number computed from attributes, and attributes as numbers.
inline tenon_value number(double value) { return {TENON_VALUE_FLOAT, 0, {.f = value}}; }
inline tenon_value number(int64_t value) { return {TENON_VALUE_INT, 0, {.i = value}}; }
inline tenon_value number(bool value) { return {TENON_VALUE_BOOL, 0, {.i = value}}; }
inline tenon_value number(const tenon_value& value) { return value; }
inline double attribute_float(const tenon_value& value) { return tenon_arg_float(&value); }
inline int64_t attribute_int(const tenon_value& value) {
  return value.tag == TENON_VALUE_FLOAT ? static_cast<int64_t>(value.v.f) : value.v.i;
}
inline bool attribute_bool(const tenon_value& value) { return value.v.i != 0; }

}  // namespace tenon::kernel_c
