// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

namespace tenon::graph {

Type type_of(const tenon_tensor& tensor) {
  return {tensor.dtype, tensor.device, Axes(tensor.shape, tensor.shape + tensor.ndim)};
}

int64_t element_count(const Type& type) {
  return std::accumulate(type.shape.begin(), type.shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t byte_count(const Type& type) {
  return element_count(type) * int64_t{host->dtype_size(type.dtype)};
}

std::string device_text(tenon_device_id device) {
  if (device == TENON_DEVICE_NONE) return "none";
  const char* kind = host->device_kind_name(TENON_DEVICE_KIND(device));
  return std::string(kind ? kind : "?") + ":" + std::to_string(TENON_DEVICE_INDEX(device));
}

std::string type_text(const Type& type) {
  const char* name = host->dtype_name(type.dtype);
  std::string text = std::string(name ? name : "?") + "[";
  for (size_t axis = 0; axis < type.shape.size(); ++axis)
    text += (axis ? ", " : "") + std::to_string(type.shape[axis]);
  return text + "] " + device_text(type.device);
}

Attribute::Attribute(const tenon_value& value) : value_(value) {
  switch (value.tag) {
    case TENON_VALUE_NONE:
    case TENON_VALUE_INT:
    case TENON_VALUE_BOOL:
    case TENON_VALUE_FLOAT:
    case TENON_VALUE_DTYPE:
    case TENON_VALUE_DEVICE:
      return;
    case TENON_VALUE_INTS:
    case TENON_VALUE_FLOATS:
    case TENON_VALUE_COMPLEX:
    case TENON_VALUE_STRING:
      break;
    default:
      value_ = kNoValue;
      throw Error(TENON_UNSUPPORTED,
                  "expected numbers, lists, texts, dtypes, devices and tensors as arguments, got a "
                  "value of kind " +
                      std::to_string(value.tag) + ", which a program cannot hold");
  }
  const size_t bytes = shared_bytes();
  auto copy = std::make_shared<int64_t[]>(bytes / sizeof(int64_t) + 1);  // an end for texts
  if (bytes > 0) std::memcpy(copy.get(), value.v.p, bytes);
  value_.v.p = copy.get();
  shared_ = std::move(copy);
}

// Of lists and texts.
size_t Attribute::shared_bytes() const {
  switch (value_.tag) {
    case TENON_VALUE_INTS:
      return value_.aux * sizeof(int64_t);
    case TENON_VALUE_FLOATS:
      return value_.aux * sizeof(double);
    case TENON_VALUE_COMPLEX:
      return 2 * sizeof(double);
    case TENON_VALUE_STRING:
      return value_.aux;
    default:
      return 0;
  }
}

bool Attribute::operator==(const Attribute& other) const {
  if (value_.tag != other.value_.tag) return false;
  if (!shared_) return value_.v.i == other.value_.v.i;
  if (shared_ == other.shared_) return true;
  const size_t bytes = shared_bytes();
  return bytes == other.shared_bytes() && std::memcmp(value_.v.p, other.value_.v.p, bytes) == 0;
}

const char* step_name(const Step& step) {
  switch (step.kind) {
    case StepKind::kCall:
      return step.name.c_str();
    case StepKind::kView:
      return "view";
    case StepKind::kDetach:
      return "detach";
    case StepKind::kCond:
      return "cond";
    case StepKind::kWhile:
      return "while";
    case StepKind::kScan:
      return "scan";
  }
  return "?";
}

std::string location_text(const Location& location) {
  if (location.file.empty()) return "";
  return location.file.text() + ":" + std::to_string(location.line);
}

std::string step_text(const Step& step) {
  std::string text = "`" + std::string(step_name(step)) + "`";
  if (std::string where = location_text(step.location); !where.empty()) text += " at " + where;
  return text;
}

std::string call_text(const Graph& graph, const Step& step) {
  std::string text = std::string(step_name(step)) + "(";
  bool is_first = true;
  for_each_operand(step, [&](ValueId id) {
    text += (is_first ? "" : ", ") + type_text(graph.values[id]);
    is_first = false;
  });
  return text + ")";
}

bool is_random(const Step& step) {
  if (step.kind == StepKind::kCall && host->op_def(step.op)->flags & TENON_OP_RANDOM) return true;
  return std::any_of(step.regions.begin(), step.regions.end(), [](const Graph& region) {
    return std::any_of(region.steps.begin(), region.steps.end(), is_random);
  });
}

void replace_operands(Step& step, const std::vector<ValueId>& by) {
  for (Operand& operand : step.operands) {
    if (operand.kind == Operand::kValue) operand.value = by[operand.value];
    for (ValueId& id : operand.list) id = by[id];
  }
}

void replace_live_outs(Graph& graph, const std::vector<ValueId>& by) {
  for (ValueId& id : graph.results) id = by[id];
  for (GradUpdate& update : graph.grads)
    if (update.grad != kNoValueId) update.grad = by[update.grad];
}

void replace_value(Graph& graph, ValueId value, ValueId by) {
  auto exchange = [&](ValueId& id) {
    if (id == value) id = by;
  };
  for (Step& step : graph.steps) {
    for (Operand& operand : step.operands) {
      if (operand.kind == Operand::kValue) exchange(operand.value);
      for (ValueId& id : operand.list) exchange(id);
    }
    for (size_t i = 0; i < step.results.size(); ++i)
      if (is_given(step, i)) exchange(step.results[i]);
  }
  for (ValueId& id : graph.results) exchange(id);
  for (GradUpdate& update : graph.grads)
    if (update.grad != kNoValueId) exchange(update.grad);
}

void set_numerics(Graph& graph, int32_t numerics) {
  graph.numerics = numerics;
  for (Step& step : graph.steps)
    for (Graph& region : step.regions) set_numerics(region, numerics);
}

void set_claimers(Graph& graph, const std::vector<std::shared_ptr<const Claimer>>& claimers) {
  graph.claimers = claimers;
  for (Step& step : graph.steps)
    for (Graph& region : step.regions) set_claimers(region, claimers);
}

}  // namespace tenon::graph
