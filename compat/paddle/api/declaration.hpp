// SPDX-License-Identifier: Apache-2.0
// What an author declared, parsed and checked: names without decorators, attributes with types,
// which output is which input written in place.
#pragma once

#include <paddle/phi/api/ext/op_meta_info.h>

#include <string>
#include <vector>

namespace tenon::paddle {

// "X@VECTOR@GRAD": the gradient of the list X.
struct Name {
  explicit Name(const std::string& text);

  std::string text;        // as written
  std::string base;        // without decorators
  std::string identifier;  // "x_grad": for schema and Python
  int gradients = 0;       // how many times @GRAD
  bool is_new = false;
  bool is_list = false;
  bool is_optional = false;

  // The same tensor, however it is decorated.
  bool is(const Name& other) const {
    return base == other.base && gradients == other.gradients && is_new == other.is_new;
  }
  // The gradient of `other`, which an operator is given.
  bool is_gradient_of(const Name& other) const {
    return base == other.base && gradients == other.gradients + 1 && !is_new;
  }
};

// The one of `inputs` that a gradient operator's output is the gradient of; -1: none. An output
// that is called new is one whose plain name another tensor has already: New(Grad("Out")) is the
// gradient of "Out" beside the input Grad("Out"). New("Out") means the same.
int find_differentiated(const Name& output, const std::vector<Name>& inputs);

enum class AttributeType {
  kBool,
  kInt,
  kInt64,
  kFloat,
  kDouble,
  kString,
  kInts,
  kInt64s,
  kFloats,
  kDoubles,
  kStrings
};
struct Attribute {
  std::string name;
  std::string identifier;
  AttributeType type;
};

// One operator, checked. Lives as long as the process: attached operators and recorded calls point
// at it.
struct Declaration {
  // Throws with the name of the operator, what was expected and what was found.
  explicit Declaration(const ::paddle::OpMetaInfo& info);

  ::paddle::OpMetaInfo info;
  std::string operator_name;  // "paddle_custom::swiglu"
  std::vector<Name> inputs;
  std::vector<Attribute> attributes;
  std::vector<Name> outputs;
  std::vector<int> written_input;  // by output: the input it is written over, or -1
  bool is_variable = false;        // the number of result tensors depends on the arguments
  bool is_in_place = false;        // every output is written over an input
  // A shape or dtype function was given and does not fit: see `warnings`. Nothing is known of
  // results before the kernel has run, not even by default.
  bool lacks_infer = false;
  std::vector<std::string> warnings;
  const Declaration* forward = nullptr;   // whose gradient this is
  const Declaration* gradient = nullptr;  // NULL: none

  int find_input(const Name& name) const;
  int find_attribute(const std::string& name) const;
  // The output that is written over this input, or -1.
  int find_written(size_t input) const;
};

const char* attribute_type_name(AttributeType type);  // "std::vector<int>"

}  // namespace tenon::paddle
