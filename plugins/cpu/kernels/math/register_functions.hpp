// SPDX-License-Identifier: Apache-2.0
// Elementwise operators as functions of one or two vector registers, for loops that are assembled
// when programs run (tenon/services/register_functions.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::cpu {

struct RegisterFunction {
  const char* op;
  int32_t dtype;
  uint32_t operands;
  // What the parameter behind the operands has to be: 0 or 1 of a bool, 1 of a number; -1: there is
  // none, or it does not matter.
  int32_t attribute;
  const void* code;
};

// Those of one instruction set; none where registers are narrower than 32 bytes.
struct RegisterFunctions {
  uint32_t bytes;
  const RegisterFunction* first;
  size_t count;
};

}  // namespace tenon::cpu
