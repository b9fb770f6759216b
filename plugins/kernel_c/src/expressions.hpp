// SPDX-License-Identifier: Apache-2.0
// Tables of scalar expressions in Kernel C, as tenon-codegen writes them (`kernel-c`), and what
// runs them.
#pragma once

#include "table.hpp"

#include <tenon/unbox.h>
#include <tenon/value.hpp>

namespace tenon::kernel_c {

// -- elementwise: elementwise.cpp puts loops around them, for any strides and broadcasting
// ------------
inline constexpr uint32_t kElementwiseTraits =
    kAnyStrides | TENON_KERNEL_BROADCAST | TENON_KERNEL_HOST_SCALARS;

// Called e_<name> in expressions. Its type is T, or that of its own dtype.
struct ElementwiseInput {
  const char* name;
  bool own_dtype;
};

struct ElementwiseCase {
  uint64_t dtype_mask;
  const char* parts;  // statements before the expression, which declare e_<name>
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

// Every one of them, as generated.
std::span<const ElementwiseOp* const> elementwise_ops();

tenon_status run_elementwise(const ElementwiseOp& op, tenon_ctx* ctx, const tenon_value* args,
                             tenon_value* outs, tenon_err* err);

// Several results, all of the dtype and the shape of the inputs. `statements` declare e_<name> and
// assign r0, r1, ...
struct SeveralResultsOp {
  const char* op;
  uint32_t ninputs, nouts;
  const ElementwiseInput* inputs;
  uint32_t nvalues;
  const char* const* types;
  void (*values)(const tenon_value* attributes, tenon_value* out);
  const char* statements;
};

tenon_status run_several_results(const SeveralResultsOp& op, tenon_ctx* ctx,
                                 const tenon_value* args, tenon_value* outs, tenon_err* err);

// -- reductions over any axes
// -------------------------------------------------------------------------
inline constexpr uint32_t kReductionTraits = TENON_KERNEL_STRIDED;

struct ReductionParts {
  const char* init;     // NULL: the first element starts
  const char* map;      // of e_x, and of its place e_i among the elements reduced
  const char* combine;  // of e_a and e_b
  const char* finish;   // of e_a and the count e_n
};

struct ReductionOp {
  const char* op;
  uint32_t axis_argument;
  bool truth;                    // partial results are 0 or 1
  ReductionParts parts;          // of real elements
  ReductionParts complex_parts;  // of complex ones, if there are any
  // (optional) Instead of the expressions: Kernel C that defines A, map_element, combine and
  // finish.
  const char* definitions = nullptr;
};

tenon_status run_reduction(const ReductionOp& op, tenon_ctx* ctx, const tenon_value* args,
                           tenon_value* outs, tenon_err* err);

// -- numbers computed from attributes -------------------------------------------------------------
template <class Number>
tenon_value number(Number value) {
  return boxed(value);
}
inline tenon_value number(const tenon_value& value) { return value; }
inline double attribute_float(const tenon_value& value) { return tenon_arg_float(&value); }
inline int64_t attribute_int(const tenon_value& value) {
  return value.tag == TENON_VALUE_FLOAT ? static_cast<int64_t>(value.v.f) : value.v.i;
}
inline bool attribute_bool(const tenon_value& value) { return value.v.i != 0; }

}  // namespace tenon::kernel_c
