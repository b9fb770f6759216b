// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes. Tables of the four expressions come from tenon-codegen (`kernel-c`);
// argmax, var and logsumexp bring their own text.
#pragma once

#include "source.hpp"
#include "table.hpp"

namespace tenon::kernel_c {

inline constexpr uint32_t kReductionTraits = TENON_KERNEL_STRIDED;

struct ReductionOp {
  const char* op;
  uint32_t axis_argument;
  bool truth;            // partial results are 0 or 1
  const char* init;      // NULL: the first element starts
  const char* map;       // of e_x, and of its place e_i among the elements reduced
  const char* combine;   // of e_a and e_b
  const char* finish;    // of e_a and the count e_n
  // (optional) Instead of the expressions: Kernel C that defines A, map_element, combine and finish.
  const char* definitions = nullptr;
};

tenon_status run_reduction(const ReductionOp& op, tenon_ctx* ctx, const tenon_value* args,
                           tenon_value* outs, tenon_err* err);

}  // namespace tenon::kernel_c
