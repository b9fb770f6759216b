// SPDX-License-Identifier: Apache-2.0
// One node of a model and what is around it: what converters see.
#pragma once

#include <string_view>

#include "reader/model.hpp"
#include "steps.hpp"
#include "table/table.hpp"

namespace tenon::onnx {

class Importer;
class Scope;

class Conversion {
 public:
  Conversion(const Node& node, const Schema& schema, int64_t opset, Values inputs,
             std::vector<Attribute> attributes, Importer& importer, Scope& scope);

  // Inputs by the names of the format; none where the node leaves one out, a list of those of a variadic one.
  Value input(std::string_view name) const;
  const Values& inputs() const { return inputs_; }
  const Tensor& tensor(std::string_view name) const;
  bool has(std::string_view name) const { return !input(name).is_none(); }

  // Attributes, or their defaults; none without either.
  Value attribute(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t otherwise = 0) const;
  double number(std::string_view name, double otherwise = 0) const;
  std::string text(std::string_view name) const;
  Ints integers(std::string_view name, const Ints& otherwise = {}) const;
  const Graph& graph(std::string_view name) const;

  // Whether the node names its result `index`.
  bool wants(size_t index) const {
    return index < node.outputs.size() && !node.outputs[index].empty();
  }

  // A step, and its only or first result.
  Tensor call(const std::string& op, const Arguments& arguments) const;
  Values call_all(const std::string& op, const Arguments& arguments) const;
  Tensor cast(const Tensor& tensor, int32_t dtype) const;

  // The model asks for what is not there, or for what is wrong. Without the node, which the importer adds.
  [[noreturn]] void refuse(const std::string& text) const;
  [[noreturn]] void fail(const std::string& text) const;

  const Node& node;
  const Schema& schema;
  const int64_t opset;
  Importer& importer;
  Scope& scope;

 private:
  const Attribute* find(std::string_view name) const;
  void check_names() const;

  Values inputs_;
  std::vector<Attribute> attributes_;
};

using Converter = Values (*)(Conversion&);
// Of convert/*.cpp, by the name that a line's `native` has; nullptr: there is none.
Converter find_converter(const std::string& name);

// The dtype of an element type; throws Error for what has none.
int32_t dtype_of(int64_t element_type, std::string_view what);
// What sums of `tensor` are made in: those of float16 and bfloat16 in float32.
inline int32_t wide_dtype(const Tensor& tensor) {
  return tensor->dtype == TENON_DTYPE_F64 ? TENON_DTYPE_F64 : TENON_DTYPE_F32;
}

}  // namespace tenon::onnx
