// SPDX-License-Identifier: Apache-2.0
// The signature of a program: what its inputs and results are called, and of which types they are.
#pragma once

#include <tenon/services/graph.h>

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

struct SignatureValue {
  std::string name;
  Type type;  // at the recorded sizes
  // For each axis the dimension that is its size, or TENON_GRAPH_SIZE_*.
  std::vector<int32_t> dimensions;
};

struct Signature {
  std::vector<SignatureValue> inputs, results;
};

// Fills what the caller's version of the structure has.
void write_out(const SignatureValue& value, tenon_graph_value_info* out);

}  // namespace tenon::graph
