// SPDX-License-Identifier: Apache-2.0
// What an executable holds: a list of steps over values whose memory is settled.
#pragma once

#include <tenon/abi.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace reference {

enum class Kind {
  kNone,
  kAdd,
  kMultiply,
  kMaximum,
  kExp,
  kMatmul,
  kView,     // the same elements in another shape
  kPermute,  // the axes in another order
  kRepeat    // repeated along axes, to the shape of the result
};

// Where a value lies: input or output number `at`, byte `at` of the workspace, or the program itself.
struct Place {
  enum Where { kInput, kOutput, kWorkspace, kProgram } where;
  uint64_t at;
};

struct Value {
  Place place;
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<char> elements;  // kProgram: constants, and numbers that are repeated
};

struct ExecutableStep {
  Kind kind;
  std::vector<uint32_t> operands;  // indices of values
  uint32_t result;
  std::vector<int32_t> axes;  // kPermute: of the operand, in the order of the result
};

struct ExecutableProgram {
  std::vector<Value> values;
  std::vector<ExecutableStep> steps;
  uint64_t workspace_bytes = 0;
};

}  // namespace reference

struct tenon_executable_s {
  std::shared_ptr<reference::ExecutableProgram> program;  // queued runs hold it too
};
