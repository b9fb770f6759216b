// SPDX-License-Identifier: Apache-2.0
#include "step.hpp"

#include <tenon/dtypes.h>
#include <tenon/unbox.h>
#include <tenon/plugin.hpp>

#include <string>

namespace tenon::onnxruntime {
namespace {

double number_of(const tenon_tensor& scalar) {
  switch (scalar.dtype) {
    case TENON_DTYPE_BOOL:
      return *static_cast<const uint8_t*>(scalar.data) != 0;
    case TENON_DTYPE_I64: {
      const int64_t number = *static_cast<const int64_t*>(scalar.data);
      constexpr int64_t kExact = int64_t{1} << 53;
      if (number > kExact || number < -kExact)
        throw Refusal("a number is beyond 2^53: " + std::to_string(number));
      return static_cast<double>(number);
    }
    case TENON_DTYPE_F64:
      return *static_cast<const double*>(scalar.data);
    default:
      throw Refusal("a number is complex");
  }
}

}  // namespace

Step::Step(const tenon_subgraph_step& step) : step_(step), definition_(*host->op_def(step.op)) {}

std::optional<size_t> Step::find(std::string_view parameter) const {
  for (uint32_t i = 0; i < definition_.nparams && i < step_.nargs; ++i) {
    const auto* each = reinterpret_cast<const tenon_param_def*>(
        reinterpret_cast<const char*>(definition_.params) + size_t{i} * definition_.param_size);
    if (parameter == each->name) return i;
  }
  return std::nullopt;
}

const tenon_value& Step::at(std::string_view parameter) const {
  const std::optional<size_t> index = find(parameter);
  if (!index) throw Refusal("it has no parameter `" + std::string(parameter) + "`");
  return step_.args[*index];
}

const tenon_tensor& Step::tensor(std::string_view parameter) const {
  const tenon_tensor* found = tenon_arg_tensor(&at(parameter));
  if (!found) throw Refusal("`" + std::string(parameter) + "` is no tensor");
  return *found;
}

std::vector<const tenon_tensor*> Step::tensors(std::string_view parameter) const {
  const tenon_value& value = at(parameter);
  const tenon_tensor* const* list = tenon_arg_tensors(&value);
  if (!list) throw Refusal("`" + std::string(parameter) + "` is no list of tensors");
  return {list, list + value.aux};
}

double Step::number(std::string_view parameter) const {
  const tenon_value& value = at(parameter);
  if (const tenon_tensor* scalar = tenon_arg_tensor(&value))
    if (scalar->flags & TENON_TENSOR_HOST_SCALAR) return number_of(*scalar);
  if (value.tag != TENON_VALUE_FLOAT && value.tag != TENON_VALUE_INT &&
      value.tag != TENON_VALUE_BOOL)
    throw Refusal("`" + std::string(parameter) + "` is no number");
  return tenon_arg_float(&value);
}

int64_t Step::integer(std::string_view parameter) const {
  const tenon_value& value = at(parameter);
  if (value.tag != TENON_VALUE_INT && value.tag != TENON_VALUE_BOOL)
    throw Refusal("`" + std::string(parameter) + "` is no integer");
  return value.v.i;
}

std::vector<int64_t> Step::integers(std::string_view parameter) const {
  const tenon_value& value = at(parameter);
  const int64_t* list = tenon_arg_ints(&value);
  if (!list) throw Refusal("`" + std::string(parameter) + "` is no list of integers");
  return {list, list + tenon_arg_count(&value)};
}

int64_t Step::axis(std::string_view parameter, const tenon_tensor& of) const {
  const int64_t axis = integer(parameter);
  return axis < 0 ? axis + of.ndim : axis;
}

std::vector<int64_t> Step::axes(std::string_view parameter, const tenon_tensor& of) const {
  std::vector<int64_t> axes;
  if (!has(parameter)) {
    for (int64_t i = 0; i < of.ndim; ++i) axes.push_back(i);
    return axes;
  }
  for (int64_t axis : integers(parameter)) axes.push_back(axis < 0 ? axis + of.ndim : axis);
  return axes;
}

std::vector<int64_t> shape_of(const tenon_tensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.ndim};
}

std::string operand(ModelWriter& model, const tenon_value& value, int32_t dtype) {
  const tenon_tensor* tensor = tenon_arg_tensor(&value);
  if (!tensor) throw Refusal("an argument is no tensor");
  if (tensor->flags & TENON_TENSOR_HOST_SCALAR) return model.number(number_of(*tensor), dtype);
  return cast(model, model.name(tensor), tensor->dtype, dtype);
}

std::string cast(ModelWriter& model, const std::string& name, int32_t from, int32_t to) {
  if (from == to) return name;
  return model.node("Cast", {name}, {{"to", int64_t{element_type(to)}}});
}

}  // namespace tenon::onnxruntime
