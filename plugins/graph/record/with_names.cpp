// SPDX-License-Identifier: Apache-2.0
#include "record/with_names.hpp"

#include "ir/names.hpp"
#include "record/compare_recordings.hpp"

namespace tenon::graph {
namespace {

std::vector<std::string> listed(const char* const* names, size_t count) {
  std::vector<std::string> list;
  for (size_t i = 0; i < count; ++i) list.emplace_back(names[i] ? names[i] : "");
  return list;
}

}  // namespace

ProgramPtr with_names(const Program& program, const char* const* inputs,
                      const char* const* results) {
  ProgramPtr named = copy_program(program);
  Graph& graph = named->graph;
  if (inputs) graph.input_names = listed(inputs, graph.inputs.size());
  if (results) graph.result_names = listed(results, graph.results.size());
  check_names(graph);
  return named;
}

}  // namespace tenon::graph
