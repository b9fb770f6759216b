// SPDX-License-Identifier: Apache-2.0
#include "signature.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <cstring>
#include <set>

#include "program.hpp"
#include "settle.hpp"

namespace tenon::graph {
namespace {

constexpr size_t kMaxNameBytes = 1u << 16;

// The name of entry `i`, or "input_3".
std::string name_of(const std::vector<std::string>& names, size_t i, const char* kind) {
  return i < names.size() && !names[i].empty() ? names[i]
                                               : std::string(kind) + "_" + std::to_string(i);
}

void check_list(const std::vector<std::string>& names, size_t count, const char* kind) {
  if (names.empty()) return;
  std::set<std::string> seen;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = name_of(names, i, kind);
    if (name.size() > kMaxNameBytes || name.find('\0') != name.npos)
      throw Error(TENON_INVALID_ARGUMENT, "program: the name of " + std::string(kind) + " " +
                                              std::to_string(i) +
                                              " has a NUL, or more than 65536 bytes");
    if (!seen.insert(name).second)
      throw Error(TENON_INVALID_ARGUMENT, "program: expected another name for each " +
                                              std::string(kind) + ", got '" + name + "' twice");
  }
}

std::vector<std::string> listed(const char* const* names, size_t count) {
  std::vector<std::string> list;
  for (size_t i = 0; i < count; ++i) list.emplace_back(names[i] ? names[i] : "");
  return list;
}

std::vector<SignatureValue> described(const Program& program, const std::vector<ValueId>& values,
                                      const std::vector<std::string>& names, const char* kind) {
  std::vector<SignatureValue> list;
  for (size_t i = 0; i < values.size(); ++i) {
    const Type& type = program.graph.values[values[i]];
    SignatureValue value{name_of(names, i, kind), type, {}};
    value.dimensions.assign(type.shape.size(), TENON_GRAPH_SIZE_FIXED);
    if (program.dimensions) value.dimensions = program.dimensions->of_values.at(values[i]);
    list.push_back(std::move(value));
  }
  return list;
}

}  // namespace

bool has_names(const Graph& graph) {
  auto is_named = [](const std::string& name) { return !name.empty(); };
  return std::any_of(graph.input_names.begin(), graph.input_names.end(), is_named) ||
         std::any_of(graph.result_names.begin(), graph.result_names.end(), is_named);
}

ProgramPtr with_names(const Program& program, const char* const* inputs,
                      const char* const* results) {
  ProgramPtr named = copy_program(program);
  Graph& graph = named->graph;
  if (inputs) graph.input_names = listed(inputs, graph.inputs.size());
  if (results) graph.result_names = listed(results, graph.results.size());
  check_names(graph);
  return named;
}

void write_out(const SignatureValue& value, tenon_graph_value_info* out) {
  const tenon_graph_value_info all = {.struct_size = out->struct_size,
                                      .dtype = value.type.dtype,
                                      .name = value.name.c_str(),
                                      .device = value.type.device,
                                      .ndim = static_cast<int32_t>(value.type.shape.size()),
                                      .shape = value.type.shape.data(),
                                      .dimensions = value.dimensions.data()};
  std::memcpy(out, &all, std::min<size_t>(out->struct_size, sizeof all));
}

void check_names(const Graph& graph) {
  check_list(graph.input_names, graph.inputs.size(), "input");
  check_list(graph.result_names, graph.results.size(), "output");
}

}  // namespace tenon::graph

const tenon::graph::Signature& tenon_graph_program::signature() const {
  std::call_once(described_, [&] {
    signature_.inputs = tenon::graph::described(*this, graph.inputs, graph.input_names, "input");
    signature_.results =
        tenon::graph::described(*this, graph.results, graph.result_names, "output");
  });
  return signature_;
}
