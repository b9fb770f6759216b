// SPDX-License-Identifier: Apache-2.0
// The engine of kernels that compute each element from the same element of the inputs.
#pragma once

#include "expressions.hpp"
#include "source.hpp"

namespace tenon::kernel_c {

// `statements` assign r0, r1, ... (of the outputs' types) from e_<name> and v0...
struct ElementwiseProgram {
  const void* family;  // what the program is cached under, with the dtypes and layouts
  std::string_view name;
  const ElementwiseInput* inputs;
  uint32_t ninputs, nouts, nvalues;
  const char* const* types;  // of the values
  std::string_view statements;
  bool is_expression = false;  // `statements` is the value of r0
  const char* parts = "";      // statements before it
  bool only_moves = false;     // elements are copied, so that any dtype will do
};
inline constexpr uint32_t kMaxInputs = 4, kMaxOutputs = 4;

tenon_status run_elementwise_program(const ElementwiseProgram& program, int dtype, tenon_ctx* ctx,
                                     const tenon_tensor* const* inputs, tenon_tensor* const* outs,
                                     const tenon_value* values, tenon_err* err);

}  // namespace tenon::kernel_c
