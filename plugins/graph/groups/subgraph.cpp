// SPDX-License-Identifier: Apache-2.0
#include "groups/subgraph.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <complex>
#include <cstring>
#include <unordered_set>

#include "support/host.hpp"

namespace tenon::graph {
namespace {

bool is_number(int32_t tag) {
  return tag == TENON_VALUE_INT || tag == TENON_VALUE_BOOL || tag == TENON_VALUE_FLOAT ||
         tag == TENON_VALUE_COMPLEX;
}

// The dtype that holds a number as Python gave it.
int32_t dtype_of_number(int32_t tag) {
  switch (tag) {
    case TENON_VALUE_BOOL:
      return TENON_DTYPE_BOOL;
    case TENON_VALUE_INT:
      return TENON_DTYPE_I64;
    case TENON_VALUE_FLOAT:
      return TENON_DTYPE_F64;
    default:
      return TENON_DTYPE_C128;
  }
}

void write_number(const tenon_value& value, void* memory) {
  if (value.tag == TENON_VALUE_BOOL)
    *static_cast<uint8_t*>(memory) = value.v.i != 0;
  else if (value.tag == TENON_VALUE_COMPLEX)
    std::memcpy(memory, value.v.p, 2 * sizeof(double));
  else
    std::memcpy(memory, &value.v, sizeof value.v.i);
}

}  // namespace

std::vector<ValueId> read_from_outside(const Graph& graph, uint32_t begin, uint32_t end) {
  std::unordered_set<ValueId> known;
  std::vector<ValueId> read;
  for (uint32_t i = begin; i < end; ++i) {
    for_each_operand(graph.steps[i], [&](ValueId value) {
      if (known.insert(value).second) read.push_back(value);
    });
    known.insert(graph.steps[i].results.begin(), graph.steps[i].results.end());
  }
  return read;
}

Subgraph::Subgraph(const Graph& graph, uint32_t begin, uint32_t end,
                   const std::vector<ValueId>& results,
                   const std::unordered_map<ValueId, tenon_tensor*>& constants)
    : graph_(graph), inputs_(read_from_outside(graph, begin, end)) {
  const tenon_device_id device = graph.values[graph.steps[begin].results[0]].device;
  for (ValueId value : inputs_) {
    input_tensors_.push_back(placeholder(value));
    const auto constant = constants.find(value);
    constants_.push_back(constant == constants.end() ? nullptr : constant->second);
  }
  for (uint32_t i = begin; i < end; ++i) {
    const Step& step = graph.steps[i];
    const tenon_op_def* def = host->op_def(step.op);
    auto& arguments = arguments_.emplace_back();
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const auto* parameter = reinterpret_cast<const tenon_param_def*>(
          reinterpret_cast<const char*>(def->params) + k * def->param_size);
      arguments.push_back(argument(step.operands[k], *parameter, device));
    }
    auto& made = lists_.emplace_back();
    for (ValueId value : step.results) made.push_back(placeholder(value));
    steps_.push_back({.op = step.op,
                      .args = arguments.data(),
                      .outs = made.data(),
                      .nargs = static_cast<uint32_t>(arguments.size()),
                      .nouts = static_cast<uint32_t>(made.size())});
  }
  for (ValueId value : results) output_tensors_.push_back(placeholder(value));
  name_ = location_text(graph.steps[begin].location);
  if (name_.empty()) name_ = step_name(graph.steps[begin]);
  table_ = {.struct_size = sizeof table_,
            .step_size = sizeof(tenon_subgraph_step),
            .must_understand = 0,
            .name = name_.c_str(),
            .steps = steps_.data(),
            .inputs = input_tensors_.data(),
            .outputs = output_tensors_.data(),
            .constants = constants_.data(),
            .nsteps = static_cast<uint32_t>(steps_.size()),
            .ninputs = static_cast<uint32_t>(input_tensors_.size()),
            .noutputs = static_cast<uint32_t>(output_tensors_.size()),
            .reserved = 0};
}

tenon_tensor* Subgraph::placeholder(ValueId value) {
  Tensor& known = placeholders_[value];
  if (!known) {
    const Type& type = graph_.values[value];
    ErrorSink err;
    tenon_tensor* made = nullptr;
    err.check(host->tensor_create(TENON_DEVICE_META, type.dtype,
                                  static_cast<int32_t>(type.shape.size()), type.shape.data(), &made,
                                  err));
    known = Tensor::adopt(made);
  }
  return known.get();
}

tenon_value Subgraph::argument(const Operand& operand, const tenon_param_def& parameter,
                               tenon_device_id device) {
  if (operand.kind == Operand::kValue) return boxed(placeholder(operand.value));
  if (operand.kind == Operand::kList) {
    auto& list = lists_.emplace_back();
    for (ValueId value : operand.list) list.push_back(placeholder(value));
    return boxed(list.data(), list.size());
  }
  const tenon_value value = operand.attribute.value();
  if (parameter.kind != TENON_PARAM_TENSOR || !is_number(value.tag)) return value;
  // As kernels see it: a 0-d tensor whose data are host memory. The flag is not one that the host's own tensor
  // may carry, so the compiler gets a copy of its head.
  ErrorSink err;
  tenon_tensor* made = nullptr;
  err.check(
      host->tensor_create(host->device_host(), dtype_of_number(value.tag), 0, nullptr, &made, err));
  Number& number = numbers_.emplace_back(Number{Tensor::adopt(made), *made});
  write_number(value, made->data);
  number.scalar.flags |= TENON_TENSOR_HOST_SCALAR | TENON_TENSOR_READONLY;
  number.scalar.device = device;
  return boxed(&number.scalar);
}

}  // namespace tenon::graph
