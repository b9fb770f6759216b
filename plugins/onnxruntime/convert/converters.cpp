// SPDX-License-Identifier: Apache-2.0
#include "convert/converters.hpp"

#include <tenon/plugin.hpp>
#include <tenon/subgraph.hpp>

#include <string>
#include <unordered_map>

namespace tenon::onnxruntime {
namespace {

Convert find(std::string_view op) {
  static const auto* const table = [] {
    auto* made = new std::unordered_map<std::string_view, Convert>;
    for (const auto& list : {elementwise_converters(), layer_converters(), layout_converters(),
                             reduction_converters()})
      for (const Converter& each : list) made->emplace(each.op, each.convert);
    return made;
  }();
  const auto found = table->find(op);
  return found == table->end() ? convert_by_line : found->second;
}

void check_dtype(const tenon_tensor& value) {
  if (value.flags & TENON_TENSOR_HOST_SCALAR || element_type(value.dtype) != 0) return;
  throw Refusal(std::string("of ") + host->dtype_name(value.dtype) +
                ", for which ONNX Runtime has few kernels");
}

// What a step reads becomes inputs of nodes, too: a comparison of float64 makes booleans.
void check_dtypes(const Step& step) {
  for (size_t i = 0; i < step.results(); ++i) check_dtype(step.result(i));
  for (size_t i = 0; i < step.count(); ++i) for_each_tensor(step.value(i), check_dtype);
}

}  // namespace

void convert(ModelWriter& model, const Step& step) {
  check_dtypes(step);
  const Names made = find(step.name())(model, step);
  for (size_t i = 0; i < step.results(); ++i)
    if (i < made.size() && !made[i].empty()) model.set_name(&step.result(i), made[i]);
}

}  // namespace tenon::onnxruntime
