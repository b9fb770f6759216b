// SPDX-License-Identifier: Apache-2.0
#include "program/signature.hpp"

#include <algorithm>
#include <cstring>

#include "ir/names.hpp"
#include "program/program.hpp"

namespace tenon::graph {
namespace {

std::vector<SignatureValue> described(const Program& program, const std::vector<ValueId>& values,
                                      const std::vector<std::string>& names) {
  std::vector<SignatureValue> list;
  for (size_t i = 0; i < values.size(); ++i) {
    const Type& type = program.graph.values[values[i]];
    SignatureValue value{names[i], type, {}};
    value.dimensions.assign(type.shape.size(), TENON_GRAPH_SIZE_FIXED);
    if (program.dimensions) value.dimensions = program.dimensions->of_values.at(values[i]);
    list.push_back(std::move(value));
  }
  return list;
}

}  // namespace

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

}  // namespace tenon::graph

void tenon_graph_program::make_signature() const {
  using namespace tenon::graph;
  std::lock_guard lock(describing_);
  if (is_described_.load(std::memory_order_relaxed)) return;
  signature_.inputs = described(*this, graph.inputs, input_names(graph));
  signature_.results = described(*this, graph.results, result_names(graph));
  is_described_.store(true, std::memory_order_release);
}
