// SPDX-License-Identifier: Apache-2.0
// A model of ONNX that is written node by node, in memory. The numbers of the fields are those of `onnx.proto`, which
// never change; plugins/onnx/reader reads the same ones.
#pragma once

#include <tenon/abi.h>

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::onnxruntime {

// A step has no form in ONNX that ONNX Runtime computes as Tenon does.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Attribute = std::variant<int64_t, float, std::vector<int64_t>>;
using Attributes = std::vector<std::pair<const char*, Attribute>>;
using Names = std::vector<std::string>;

// What ONNX calls a dtype; 0: nothing here.
int element_type(int32_t dtype);

class ModelWriter {
 public:
  // The name of a value of the sub-graph. Throws Refusal: nothing has made it.
  const std::string& name(const tenon_tensor* value) const;
  void set_name(const tenon_tensor* value, std::string name);
  bool knows(const tenon_tensor* value) const { return names_.contains(value); }

  // The name of what the node makes. An input "" is absent.
  std::string node(const char* op, const Names& inputs, const Attributes& attributes = {});
  // A number, or a list of them along one axis. Throws Refusal: an integer dtype does not have the number.
  std::string number(double value, int32_t dtype);
  std::string integers(std::span<const int64_t> values);

  void add_input(const std::string& name, const tenon_tensor& type);
  // Makes `value` a result of the model of this name.
  void add_output(const std::string& name, const tenon_tensor& value);
  // A tensor whose elements the session gets beside the model (`external` of a data location).
  void add_external(const std::string& name, const tenon_tensor& type);

  std::string model(const std::string& name) const;

 private:
  std::string fresh() { return "v" + std::to_string(next_++); }
  std::string initializer(const std::string& key, int32_t dtype, std::span<const int64_t> shape,
                          const std::string& bytes);

  std::unordered_map<const tenon_tensor*, std::string> names_;
  std::map<std::string, std::string> constants_;  // by dtype, shape and bytes
  std::vector<std::string> node_messages_, initializers_, inputs_, outputs_;
  uint64_t next_ = 0;
};

}  // namespace tenon::onnxruntime
