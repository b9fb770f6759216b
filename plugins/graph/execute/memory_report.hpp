// SPDX-License-Identifier: Apache-2.0
// How much memory the results of a program's steps take at once. Known before it runs, as its shapes are.
#pragma once

#include <cstdint>

namespace tenon::graph {

// Bytes. Inputs and leaves are the caller's, and what kernels need besides is theirs: neither counts.
struct MemoryUse {
  int64_t kept = 0;      // if nothing were freed before the last step has run
  int64_t stepwise = 0;  // if each value is freed after its last use, and steps run one by one
  int64_t planned = 0;   // and what only a group knows is never made
};

}  // namespace tenon::graph
