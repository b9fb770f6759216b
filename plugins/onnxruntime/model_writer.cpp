// SPDX-License-Identifier: Apache-2.0
#include "model_writer.hpp"

#include <tenon/dtypes.h>

#include <protozero/pbf_writer.hpp>

#include <array>
#include <cmath>
#include <limits>

namespace tenon::onnxruntime {
namespace {

using Writer = protozero::pbf_writer;

// Opset 18 and IR 8 are read by every version of ONNX Runtime from 1.14 on.
constexpr int64_t kOpset = 18, kIrVersion = 8;

std::string value_info(const std::string& name, const tenon_tensor& value) {
  std::string shape, tensor, type, info;
  for (int32_t i = 0; i < value.ndim; ++i) {
    std::string size;
    Writer(size).add_int64(1, value.shape[i]);
    Writer(shape).add_message(1, size);
  }
  Writer(tensor).add_int32(1, element_type(value.dtype));
  Writer(tensor).add_message(2, shape);
  Writer(type).add_message(1, tensor);
  Writer(info).add_string(1, name);
  Writer(info).add_message(2, type);
  return info;
}

std::string tensor_head(const std::string& name, int32_t dtype, std::span<const int64_t> shape) {
  std::string head;
  Writer writer(head);
  writer.add_packed_int64(1, shape.begin(), shape.end());
  writer.add_int32(2, element_type(dtype));
  writer.add_string(8, name);
  return head;
}

std::string attribute_message(const char* name, const Attribute& attribute) {
  enum { kFloat = 1, kInt = 2, kInts = 7 };  // AttributeProto.AttributeType
  std::string message;
  Writer writer(message);
  writer.add_string(1, name);
  if (const auto* number = std::get_if<int64_t>(&attribute)) {
    writer.add_int64(3, *number);
    writer.add_int32(20, kInt);
  } else if (const auto* real = std::get_if<float>(&attribute)) {
    writer.add_float(2, *real);
    writer.add_int32(20, kFloat);
  } else {
    const auto& list = std::get<std::vector<int64_t>>(attribute);
    writer.add_packed_int64(8, list.begin(), list.end());
    writer.add_int32(20, kInts);
  }
  return message;
}

}  // namespace

int element_type(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_F32:
      return 1;
    case TENON_DTYPE_I32:
      return 6;
    case TENON_DTYPE_I64:
      return 7;
    case TENON_DTYPE_BOOL:
      return 9;
    default:
      return 0;
  }
}

const std::string& ModelWriter::name(const tenon_tensor* value) const {
  const auto found = names_.find(value);
  if (found == names_.end()) throw Refusal("a value of it is made by a step that is refused");
  return found->second;
}

void ModelWriter::set_name(const tenon_tensor* value, std::string name) {
  names_[value] = std::move(name);
}

std::string ModelWriter::node(const char* op, const Names& inputs, const Attributes& attributes) {
  std::string made = fresh();
  std::string message;
  Writer writer(message);
  for (const std::string& input : inputs) writer.add_string(1, input);
  writer.add_string(2, made);
  writer.add_string(3, made + ".node");
  writer.add_string(4, op);
  for (const auto& [name, attribute] : attributes)
    writer.add_message(5, attribute_message(name, attribute));
  node_messages_.push_back(std::move(message));
  return made;
}

std::string ModelWriter::initializer(const std::string& key, int32_t dtype,
                                     std::span<const int64_t> shape, const std::string& bytes) {
  std::string& known = constants_[key + bytes];
  if (known.empty()) {
    known = fresh();
    std::string tensor = tensor_head(known, dtype, shape);
    Writer(tensor).add_bytes(9, bytes);
    initializers_.push_back(std::move(tensor));
  }
  return known;
}

std::string ModelWriter::number(double value, int32_t dtype) {
  std::string bytes;
  auto put = [&](auto element) {
    bytes.assign(reinterpret_cast<const char*>(&element), sizeof element);
  };
  const auto put_whole = [&]<class T>(T) {
    constexpr auto kMin = static_cast<double>(std::numeric_limits<T>::min());
    if (!(value >= kMin && value < -kMin && value == std::trunc(value)))
      throw Refusal("a number beside integers is none of their dtype");
    put(static_cast<T>(value));
  };
  if (dtype == TENON_DTYPE_F32)
    put(static_cast<float>(value));
  else if (dtype == TENON_DTYPE_I64)
    put_whole(int64_t{});
  else if (dtype == TENON_DTYPE_I32)
    put_whole(int32_t{});
  else
    put(static_cast<uint8_t>(value != 0));
  return initializer(std::to_string(dtype) + ":", dtype, {}, bytes);
}

std::string ModelWriter::integers(std::span<const int64_t> values) {
  const std::array shape = {static_cast<int64_t>(values.size())};
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return initializer("list:", TENON_DTYPE_I64, shape, bytes);
}

void ModelWriter::add_input(const std::string& name, const tenon_tensor& type) {
  inputs_.push_back(value_info(name, type));
}

void ModelWriter::add_output(const std::string& name, const tenon_tensor& value) {
  std::string message;
  Writer writer(message);
  writer.add_string(1, this->name(&value));
  writer.add_string(2, name);
  writer.add_string(3, name + ".node");
  writer.add_string(4, "Identity");
  node_messages_.push_back(std::move(message));
  outputs_.push_back(value_info(name, value));
}

void ModelWriter::add_external(const std::string& name, const tenon_tensor& type) {
  constexpr int32_t kExternal = 1;  // TensorProto.DataLocation
  std::string tensor = tensor_head(name, type.dtype, {type.shape, static_cast<size_t>(type.ndim)});
  std::string location;
  Writer(location).add_string(1, "location");
  Writer(location).add_string(2, "memory");
  Writer(tensor).add_message(13, location);
  Writer(tensor).add_int32(14, kExternal);
  initializers_.push_back(std::move(tensor));
}

std::string ModelWriter::model(const std::string& name) const {
  std::string graph, opset, model;
  Writer writer(graph);
  for (const std::string& message : node_messages_) writer.add_message(1, message);
  writer.add_string(2, name);
  for (const std::string& message : initializers_) writer.add_message(5, message);
  for (const std::string& message : inputs_) writer.add_message(11, message);
  for (const std::string& message : outputs_) writer.add_message(12, message);
  Writer(opset).add_string(1, "");
  Writer(opset).add_int64(2, kOpset);
  Writer(model).add_int64(1, kIrVersion);
  Writer(model).add_string(2, "tenon");
  Writer(model).add_message(7, graph);
  Writer(model).add_message(8, opset);
  return model;
}

}  // namespace tenon::onnxruntime
