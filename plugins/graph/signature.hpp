// SPDX-License-Identifier: Apache-2.0
// The signature of a program: what its inputs and results are called, and of which types they are.
#pragma once

#include <tenon/services/graph.h>

#include <memory>
#include <string>
#include <vector>

#include "ir.hpp"

namespace tenon::graph {

struct ReleaseProgram;  // program.hpp

struct SignatureValue {
  std::string name;
  Type type;  // at the recorded sizes
  // For each axis the dimension that is its size, or TENON_GRAPH_SIZE_*.
  std::vector<int32_t> dimensions;
};

struct Signature {
  std::vector<SignatureValue> inputs, results;
};

// Does the program name an input or a result?
bool has_names(const Graph& graph);

// Throws Error where two inputs or two results have one name, or a name is no text.
void check_names(const Graph& graph);

// A copy with these names; NULL in a list: no name, NULL for a list: as before. Throws Error.
std::unique_ptr<tenon_graph_program, ReleaseProgram> with_names(const tenon_graph_program& program,
                                                                const char* const* inputs,
                                                                const char* const* results);

// Fills what the caller's version of the structure has.
void write_out(const SignatureValue& value, tenon_graph_value_info* out);

}  // namespace tenon::graph
