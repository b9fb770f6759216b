// SPDX-License-Identifier: Apache-2.0
// A sub-graph as a model of ONNX.
#pragma once

#include <tenon/abi.h>

#include <string>
#include <vector>

#include "options.hpp"

namespace tenon::onnxruntime {

struct WrittenModel {
  std::string bytes;
  // Inputs of the sub-graph that differ from run to run, and constants, whose elements are beside the model.
  std::vector<uint32_t> inputs, constants;
  std::vector<std::string> input_names, constant_names, output_names;
};

// Throws Error (TENON_UNSUPPORTED) for a step that is refused.
WrittenModel write_model(const tenon_subgraph& graph, const Options& options);

// Which steps can be written: for each the number of its part, 0 for what is refused. Neighbours are one part.
void find_parts(const tenon_subgraph& graph, const Options& options, uint32_t* parts);

}  // namespace tenon::onnxruntime
