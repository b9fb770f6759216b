// SPDX-License-Identifier: Apache-2.0
#include "ir.hpp"

#include <tenon/error.hpp>

#include <cstring>

namespace tenon::graph {

Type type_of(const tenon_tensor& tensor) {
  return {tensor.dtype, tensor.device, {tensor.shape, tensor.shape + tensor.ndim}};
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
    case TENON_VALUE_INTS: {
      auto* list = static_cast<const int64_t*>(value.v.p);
      integers_.assign(list, list + value.aux);
      break;
    }
    case TENON_VALUE_FLOATS:
    case TENON_VALUE_COMPLEX: {
      auto* list = static_cast<const double*>(value.v.p);
      numbers_.assign(list, list + (value.tag == TENON_VALUE_COMPLEX ? 2 : value.aux));
      break;
    }
    case TENON_VALUE_STRING:
      if (value.aux) text_.assign(static_cast<const char*>(value.v.p), value.aux);
      break;
    default:
      throw Error(TENON_UNSUPPORTED,
                  "expected numbers, lists, texts, dtypes, devices and tensors as arguments, got a "
                  "value of kind " +
                      std::to_string(value.tag) + ", which a program cannot hold");
  }
  value_ = {value.tag, 0, {.i = 0}};
}

tenon_value Attribute::value() const {
  switch (value_.tag) {
    case TENON_VALUE_INTS:
      return boxed(integers_.data(), integers_.size());
    case TENON_VALUE_FLOATS:
      return boxed(numbers_.data(), numbers_.size());
    case TENON_VALUE_COMPLEX:
      return boxed_complex(numbers_.data());
    case TENON_VALUE_STRING:
      return boxed(std::string_view(text_));
    default:
      return value_;
  }
}

bool Attribute::operator==(const Attribute& other) const {
  auto same_bits = [](const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
  };
  return value_.tag == other.value_.tag && value_.v.i == other.value_.v.i &&
         integers_ == other.integers_ && same_bits(numbers_, other.numbers_) &&
         text_ == other.text_;
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
  return location.file + ":" + std::to_string(location.line);
}

std::string step_text(const Step& step) {
  std::string text = "`" + std::string(step_name(step)) + "`";
  if (std::string where = location_text(step.location); !where.empty()) text += " at " + where;
  return text;
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

}  // namespace tenon::graph
