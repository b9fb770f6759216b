// SPDX-License-Identifier: Apache-2.0
#include "conversion.hpp"

#include <algorithm>
#include <cstdlib>

#include "importer.hpp"
#include "reader/reader.hpp"
#include "tensors.hpp"

namespace tenon::onnx {
namespace {

// A default as schema.txt has it: JSON of numbers, texts and lists of them.
Value standard_value(const FormalAttribute& attribute) {
  const std::string& text = *attribute.standard;
  const auto unquoted = [](std::string_view quoted) {
    return std::string(quoted.substr(1, quoted.size() - 2));
  };
  // Attributes are float32: the default is the number that a model would hold.
  const auto float_of_text = [](const std::string& number) {
    return static_cast<double>(std::strtof(number.c_str(), nullptr));
  };
  if (attribute.type == "int") return int64_t{std::atoll(text.c_str())};
  if (attribute.type == "float") return float_of_text(text);
  if (attribute.type == "string") return unquoted(text);
  std::vector<std::string> items;
  std::string item;
  for (char c : text.substr(1, text.size() - 2)) {
    if (c == ',') {
      items.push_back(item);
      item.clear();
    } else {
      item += c;
    }
  }
  if (!item.empty()) items.push_back(item);
  Ints integers;
  Floats numbers;
  Texts texts;
  for (const std::string& each : items) {
    if (attribute.type == "ints") integers.push_back(std::atoll(each.c_str()));
    if (attribute.type == "floats") numbers.push_back(float_of_text(each));
    if (attribute.type == "strings") texts.push_back(unquoted(each));
  }
  if (attribute.type == "ints") return integers;
  if (attribute.type == "floats") return numbers;
  return texts;
}

const char* type_of(int32_t kind) {
  switch (kind) {
    case Attribute::Float:
      return "float";
    case Attribute::Int:
      return "int";
    case Attribute::String:
      return "string";
    case Attribute::TensorKind:
      return "tensor";
    case Attribute::GraphKind:
      return "graph";
    case Attribute::Floats:
      return "floats";
    case Attribute::Ints:
      return "ints";
    case Attribute::Strings:
      return "strings";
    case Attribute::SparseTensor:
      return "sparse_tensor";
    case Attribute::TypeKind:
      return "type_proto";
    default:
      return "?";
  }
}

}  // namespace

Conversion::Conversion(const Node& of, const Schema& of_schema, int64_t of_opset, Values inputs,
                       std::vector<Attribute> attributes, Importer& by, Scope& in)
    : node(of),
      schema(of_schema),
      opset(of_opset),
      importer(by),
      scope(in),
      inputs_(std::move(inputs)),
      attributes_(std::move(attributes)) {
  check_names();
}

// What a converter would not look at is not ignored.
void Conversion::check_names() const {
  for (const Attribute& attribute : attributes_) {
    const FormalAttribute* formal = schema.find_attribute(attribute.name);
    if (!formal)
      fail("expected attributes of the operator's opset " + std::to_string(schema.since) +
           ", got `" + attribute.name + "`");
    if (formal->type != type_of(attribute.kind))
      fail("attribute `" + attribute.name + "`: expected " + formal->type + ", got " +
           type_of(attribute.kind));
  }
  for (const FormalAttribute& formal : schema.attributes)
    if (formal.is_required && !find(formal.name))
      fail("expected attribute `" + formal.name + "`, got none");
  const bool is_variadic = !schema.inputs.empty() && schema.inputs.back().is_variadic;
  if (inputs_.size() > schema.inputs.size() && !is_variadic)
    fail("expected at most " + std::to_string(schema.inputs.size()) + " inputs, got " +
         std::to_string(inputs_.size()));
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    const Formal& formal = schema.inputs[i];
    if (!formal.is_optional && !formal.is_variadic &&
        (i >= node.inputs.size() || node.inputs[i].empty()))
      fail("expected input `" + formal.name + "`, got none");
  }
}

Value Conversion::input(std::string_view name) const {
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    if (schema.inputs[i].name != name) continue;
    if (schema.inputs[i].is_variadic)
      return Values(inputs_.begin() + static_cast<ptrdiff_t>(std::min(i, inputs_.size())),
                    inputs_.end());
    return i < inputs_.size() ? inputs_[i] : Value();
  }
  throw Error(TENON_INTERNAL,
              "operator " + schema.name + " has no input `" + std::string(name) + "`");
}

const Tensor& Conversion::tensor(std::string_view name) const {
  for (size_t i = 0; i < schema.inputs.size() && i < inputs_.size(); ++i)
    if (schema.inputs[i].name == name) return inputs_[i].tensor(std::string(name));
  fail("expected input `" + std::string(name) + "`, got none");
}

const Attribute* Conversion::find(std::string_view name) const {
  for (const Attribute& attribute : attributes_)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

Value Conversion::attribute(std::string_view name) const {
  const Attribute* given = find(name);
  if (!given) {
    const FormalAttribute* formal = schema.find_attribute(name);
    return formal && formal->standard ? standard_value(*formal) : Value();
  }
  switch (given->kind) {
    case Attribute::Float:
      return static_cast<double>(given->number);
    case Attribute::Int:
      return given->integer;
    case Attribute::String:
      return given->text;
    case Attribute::TensorKind: {
      const Value value = importer.files().value(*given->tensor);
      if (const Tensor* made = value.get<Tensor>())
        importer.set_element_type(*made, given->tensor->type);
      return value;
    }
    case Attribute::Floats:
      return Floats(given->numbers.begin(), given->numbers.end());
    case Attribute::Ints:
      return given->integers;
    case Attribute::Strings:
      return given->texts;
    default:
      refuse("attribute `" + std::string(name) + "` of type " + type_of(given->kind));
  }
}

int64_t Conversion::integer(std::string_view name, int64_t otherwise) const {
  const Value value = attribute(name);
  return value.is_none() ? otherwise : int_of(value, std::string(name));
}

double Conversion::number(std::string_view name, double otherwise) const {
  const Value value = attribute(name);
  return value.is_none() ? otherwise : float_of(value, std::string(name));
}

std::string Conversion::text(std::string_view name) const {
  const Value value = attribute(name);
  const std::string* found = value.get<std::string>();
  return found ? *found : std::string();
}

Ints Conversion::integers(std::string_view name, const Ints& otherwise) const {
  const Value value = attribute(name);
  return value.is_none() ? otherwise : ints_of(value, std::string(name));
}

const Graph& Conversion::graph(std::string_view name) const {
  const Attribute* given = find(name);
  if (!given || !given->graph) fail("expected a graph as attribute `" + std::string(name) + "`");
  return *given->graph;
}

Values Conversion::call_all(const std::string& op, const Arguments& arguments) const {
  return importer.steps().call(op, arguments);
}

Tensor Conversion::call(const std::string& op, const Arguments& arguments) const {
  return call_all(op, arguments).at(0).tensor(op);
}

Tensor Conversion::cast(const Tensor& tensor, int32_t dtype) const {
  return tensor->dtype == dtype ? tensor : call("cast", {tensor, Dtype{dtype}});
}

void Conversion::refuse(const std::string& text) const { throw Error(TENON_UNSUPPORTED, text); }
void Conversion::fail(const std::string& text) const { throw Error(TENON_INVALID_ARGUMENT, text); }

int32_t dtype_of(int64_t element_type, std::string_view what) {
  const int32_t dtype = find_dtype(element_type);
  if (dtype < 0)
    throw Error(TENON_UNSUPPORTED, std::string(what) +
                                       ": expected an element type that tensors have, got " +
                                       element_type_name(static_cast<int32_t>(element_type)));
  return dtype;
}

}  // namespace tenon::onnx
