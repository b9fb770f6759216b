// SPDX-License-Identifier: Apache-2.0
#include "ir/names.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <set>

namespace tenon::graph {
namespace {

constexpr size_t kMaxNameBytes = 1u << 16;

std::vector<std::string> filled(std::vector<std::string> names, size_t count, const char* kind) {
  names.resize(count);
  for (size_t i = 0; i < count; ++i)
    if (names[i].empty()) names[i] = std::string(kind) + "_" + std::to_string(i);
  return names;
}

void check_list(const std::vector<std::string>& names, const char* kind) {
  std::set<std::string> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].size() > kMaxNameBytes || names[i].find('\0') != std::string::npos)
      throw Error(TENON_INVALID_ARGUMENT, "program: the name of " + std::string(kind) + " " +
                                              std::to_string(i) +
                                              " has a NUL, or more than 65536 bytes");
    if (!seen.insert(names[i]).second)
      throw Error(TENON_INVALID_ARGUMENT, "program: expected another name for each " +
                                              std::string(kind) + ", got '" + names[i] + "' twice");
  }
}

}  // namespace

bool has_names(const Graph& graph) {
  auto is_named = [](const std::string& name) { return !name.empty(); };
  return std::any_of(graph.input_names.begin(), graph.input_names.end(), is_named) ||
         std::any_of(graph.result_names.begin(), graph.result_names.end(), is_named);
}

std::vector<std::string> input_names(const Graph& graph) {
  return filled(graph.input_names, graph.inputs.size(), "input");
}

std::vector<std::string> result_names(const Graph& graph) {
  return filled(graph.result_names, graph.results.size(), "output");
}

void check_names(const Graph& graph) {
  if (!has_names(graph)) return;
  check_list(input_names(graph), "input");
  check_list(result_names(graph), "output");
}

}  // namespace tenon::graph
