// SPDX-License-Identifier: Apache-2.0
#include "signature.hpp"

#include <tenon/error.hpp>
#include <tenon/schema/words.hpp>

#include "graph_service.hpp"

namespace tenon::predictor {
namespace {

template <class Get>
Value value_at(const tenon_graph_program* program, uint32_t index, Get&& get) {
  tenon_graph_value_info info = {};
  info.struct_size = sizeof info;
  const ErrorSink err;
  err.check(get(program, index, &info, err));
  return {info.name,
          info.dtype,
          info.device,
          {info.shape, info.shape + info.ndim},
          {info.dimensions, info.dimensions + info.ndim}};
}

bool is_dtype(int32_t dtype) { return dtype >= 0 && dtype < TENON_DTYPE_COUNT; }

}  // namespace

Signature::Signature(const tenon_graph_program* program) {
  const tenon_graph_service_api& graph = graph_service();
  for (uint32_t i = 0; i < graph.program_dimensions(program); ++i) {
    tenon_graph_dimension dimension = {};
    dimension.struct_size = sizeof dimension;
    const ErrorSink err;
    err.check(graph.program_dimension(program, i, &dimension, err));
    dimensions.push_back(
        {dimension.name, dimension.min, dimension.max, dimension.multiple, dimension.recorded});
  }
  for (uint32_t i = 0; i < graph.program_inputs(program); ++i)
    inputs.push_back(value_at(program, i, graph.program_input));
  for (uint32_t i = 0; i < graph.program_results(program); ++i)
    outputs.push_back(value_at(program, i, graph.program_result));
}

void Signature::open(std::vector<Dimension> chosen) {
  dimensions = std::move(chosen);
  for (Value& output : outputs)
    for (int32_t& dimension : output.dimensions) dimension = TENON_GRAPH_SIZE_FOLLOWS;
}

std::string Signature::type_text(const Value& value) const {
  std::string text = std::string(host->dtype_name(value.dtype)) + "[";
  for (size_t axis = 0; axis < value.shape.size(); ++axis) {
    const int32_t dimension = value.dimensions[axis];
    text += axis ? ", " : "";
    text += dimension >= 0 ? dimensions[static_cast<size_t>(dimension)].name
            : dimension == TENON_GRAPH_SIZE_FOLLOWS ? "?"
                                                    : std::to_string(value.shape[axis]);
  }
  return text + "]";
}

uint32_t Signature::find(const std::vector<Value>& values, const char* name) const {
  const bool is_input = &values == &inputs;
  if (!name)
    throw Error(TENON_INVALID_ARGUMENT, std::string("expected the name of an ") +
                                            (is_input ? "input" : "output") + ", got NULL");
  std::vector<std::string> names;
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return i;
    names.push_back(values[i].name);
  }
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : ", ") + ("'" + each + "'");
  throw Error(TENON_NOT_FOUND, std::string("there is no ") + (is_input ? "input" : "output") +
                                   " '" + name + "'" + schema::did_you_mean(name, names) +
                                   "; the program has " + (all.empty() ? "none" : all));
}

void Signature::check(const Value& value, int32_t dtype, const std::vector<int64_t>& shape) const {
  const bool is_input = &value >= inputs.data() && &value < inputs.data() + inputs.size();
  const std::string what = std::string(is_input ? "input" : "output") + " '" + value.name + "'";
  auto refuse = [&](tenon_status code, const std::string& why) {
    throw Error(code, what + ": expected " + type_text(value) + ", got " +
                          predictor::type_text(dtype, shape) + why);
  };
  if (dtype != value.dtype) refuse(TENON_TYPE_MISMATCH, "; convert it");
  if (shape.size() != value.shape.size()) refuse(TENON_INVALID_ARGUMENT, "");
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int32_t which = value.dimensions[axis];
    if (which == TENON_GRAPH_SIZE_FOLLOWS) continue;
    if (which < 0) {
      if (shape[axis] != value.shape[axis])
        refuse(TENON_INVALID_ARGUMENT,
               "; export the program with a tenon.Dim for axis " + std::to_string(axis));
      continue;
    }
    const Dimension& dimension = dimensions[static_cast<size_t>(which)];
    if (shape[axis] < dimension.min || shape[axis] > dimension.max ||
        shape[axis] % dimension.multiple != 0)
      refuse(TENON_INVALID_ARGUMENT,
             "; " + dimension.name + " goes from " + std::to_string(dimension.min) + " to " +
                 std::to_string(dimension.max) +
                 (dimension.multiple > 1 ? " in multiples of " + std::to_string(dimension.multiple)
                                         : ""));
  }
}

std::string type_text(int32_t dtype, const std::vector<int64_t>& shape) {
  std::string text =
      is_dtype(dtype) ? host->dtype_name(dtype) : "dtype " + std::to_string(dtype) + " (none)";
  text += "[";
  for (size_t axis = 0; axis < shape.size(); ++axis)
    text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

std::vector<int64_t> checked_shape(const std::string& what, int32_t ndim, const int64_t* shape) {
  if (ndim < 0 || ndim > TENON_MAX_NDIM || (ndim > 0 && !shape))
    throw Error(TENON_INVALID_ARGUMENT, what + ": expected 0 to " + std::to_string(TENON_MAX_NDIM) +
                                            " axes and their sizes, got " + std::to_string(ndim) +
                                            (ndim > 0 && !shape ? " axes and NULL" : ""));
  return {shape, shape + ndim};
}

uint64_t checked_bytes(const std::string& what, int32_t dtype, const std::vector<int64_t>& shape) {
  if (!is_dtype(dtype))
    throw Error(TENON_TYPE_MISMATCH,
                what + ": expected a TENON_DTYPE_ number, got " + std::to_string(dtype));
  int64_t bytes = host->dtype_size(dtype);
  bool is_empty = false;
  for (int64_t size : shape) {
    if (size < 0 || (size > 0 && __builtin_mul_overflow(bytes, size, &bytes)))
      throw Error(TENON_INVALID_ARGUMENT, what +
                                              ": expected sizes from 0 on whose product fits "
                                              "into 63 bits, got " +
                                              type_text(dtype, shape));
    is_empty |= size == 0;
  }
  return is_empty ? 0 : static_cast<uint64_t>(bytes);
}

}  // namespace tenon::predictor
