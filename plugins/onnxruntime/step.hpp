// SPDX-License-Identifier: Apache-2.0
// A step of a sub-graph, as converters read it.
#pragma once

#include <tenon/abi.h>

#include <optional>
#include <string_view>
#include <vector>

#include "model_writer.hpp"

namespace tenon::onnxruntime {

class Step {
 public:
  explicit Step(const tenon_subgraph_step& step);

  std::string_view name() const { return definition_.name; }  // "tenon::add"
  const tenon_op_def& definition() const { return definition_; }
  const tenon_tensor& result(size_t index = 0) const { return *step_.outs[index]; }
  size_t results() const { return step_.nouts; }

  // Arguments by the names of their parameters. Throws Refusal where one is of another kind.
  bool has(std::string_view parameter) const { return at(parameter).tag != TENON_VALUE_NONE; }
  const tenon_tensor& tensor(std::string_view parameter) const;
  std::vector<const tenon_tensor*> tensors(std::string_view parameter) const;
  double number(std::string_view parameter) const;
  int64_t integer(std::string_view parameter) const;
  bool flag(std::string_view parameter) const { return integer(parameter) != 0; }
  std::vector<int64_t> integers(std::string_view parameter) const;
  // An axis, or all axes where there are none, counted from the first one of x.
  int64_t axis(std::string_view parameter, const tenon_tensor& of) const;
  std::vector<int64_t> axes(std::string_view parameter, const tenon_tensor& of) const;

  // By position.
  const tenon_value& value(size_t index) const { return step_.args[index]; }
  size_t count() const { return step_.nargs; }
  // The position of a parameter; nothing where the operator has none of this name.
  std::optional<size_t> find(std::string_view parameter) const;

 private:
  const tenon_value& at(std::string_view parameter) const;

  const tenon_subgraph_step& step_;
  const tenon_op_def& definition_;
};

std::vector<int64_t> shape_of(const tenon_tensor& tensor);

// An argument as an input of a node in this dtype: a value of the sub-graph, cast where it has another, or a number.
std::string operand(ModelWriter& model, const tenon_value& value, int32_t dtype);
std::string cast(ModelWriter& model, const std::string& name, int32_t from, int32_t to);

}  // namespace tenon::onnxruntime
