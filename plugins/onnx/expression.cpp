// SPDX-License-Identifier: Apache-2.0
#include "expression.hpp"

#include <cmath>
#include <tenon/schema/words.hpp>

#include <limits>
#include <map>

#include "expression/operator_names.hpp"
#include "expression/parser.hpp"
#include "host_functions.hpp"

namespace tenon::onnx {
namespace {

using codegen::NodeKind;

bool holds_tensors(const Value& value) {
  if (value.is_tensor()) return true;
  const Values* list = value.get<Values>();
  return list && !list->empty() && list->front().is_tensor();
}

class Evaluator {
 public:
  explicit Evaluator(Conversion& conversion) : conversion_(conversion) {}

  void bind(const std::string& name, Value value) { names_[name] = std::move(value); }

  Value evaluate(const codegen::Node& node) {
    switch (node.kind) {
      case NodeKind::Integer:
        return node.integer;
      case NodeKind::Float:
        return node.number;
      case NodeKind::Boolean:
        return node.boolean;
      case NodeKind::None:
        return {};
      case NodeKind::String:
        return node.text;
      case NodeKind::Name:
        return name(node);
      case NodeKind::Unary:
        return unary(node);
      case NodeKind::Binary:
        return binary(node);
      case NodeKind::Conditional:
        return evaluate(node.children[is_true(node.children[0]) ? 1 : 2]);
      case NodeKind::Call:
        return call(node);
      case NodeKind::List:
        return list(node);
      case NodeKind::Member:
        return member(node);
      case NodeKind::Subscript:
        return subscript(node);
      case NodeKind::Tuple:
        break;
    }
    fail(node, "is not for this place");
  }

 private:
  [[noreturn]] static void fail(const codegen::Node& node, const std::string& text) {
    throw Error(TENON_INTERNAL, "`" + codegen::text_of(node) + "` " + text);
  }

  bool is_true(const codegen::Node& node) {
    const Value value = evaluate(node);
    return bool_of(value, "`" + codegen::text_of(node) + "`");
  }

  // Parts of the expression, inputs, attributes.
  Value name(const codegen::Node& node) {
    const auto part = names_.find(node.text);
    if (part != names_.end()) return part->second;
    for (const Formal& formal : conversion_.schema.inputs)
      if (formal.name == node.text) return conversion_.input(node.text);
    if (conversion_.schema.find_attribute(node.text)) return conversion_.attribute(node.text);
    if (node.text == "inputs") return conversion_.inputs();
    if (node.text == "opset") return conversion_.opset;
    if (node.text == "outputs") return static_cast<int64_t>(conversion_.node.outputs.size());
    if (node.text == "inf") return std::numeric_limits<double>::infinity();
    if (node.text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (const auto dtype = tenon::schema::find_dtype(node.text)) return Dtype{*dtype};
    // A line serves several versions: what this one does not have is absent.
    return {};
  }

  Value one(const std::string& op, const Arguments& arguments) {
    Values results = conversion_.call_all(op, arguments);
    return results.size() == 1 ? std::move(results[0]) : Value(std::move(results));
  }

  Value unary(const codegen::Node& node) {
    const Value operand = evaluate(node.children[0]);
    if (operand.is_tensor()) return one(codegen::operator_of_sign(node.text, true), {operand});
    if (node.text == "!") return !bool_of(operand, codegen::text_of(node));
    if (node.text == "-") {
      if (const int64_t* number = operand.get<int64_t>()) return -*number;
      return -float_of(operand, codegen::text_of(node));
    }
    fail(node, "is for tensors");
  }

  Value binary(const codegen::Node& node) {
    if (node.text == "&&" || node.text == "||") {
      const Value left = evaluate(node.children[0]);
      if (!left.is_tensor()) {
        if (bool_of(left, codegen::text_of(node)) == (node.text == "||")) return node.text == "||";
        const Value right = evaluate(node.children[1]);
        if (!right.is_tensor()) return bool_of(right, codegen::text_of(node));
        return right;
      }
      return one(codegen::operator_of_sign(node.text, false), {left, evaluate(node.children[1])});
    }
    const Value left = evaluate(node.children[0]), right = evaluate(node.children[1]);
    const bool tests_none =
        node.children[0].kind == NodeKind::None || node.children[1].kind == NodeKind::None;
    if (tests_none) {
      const bool same = left.is_none() && right.is_none();
      if (node.text == "==") return same;
      if (node.text == "!=") return !same;
    }
    if (left.is_tensor() || right.is_tensor())
      return one(codegen::operator_of_sign(node.text, false), {left, right});
    return host_arithmetic(node.text, left, right, "`" + codegen::text_of(node) + "`");
  }

  Value call(const codegen::Node& node) {
    // Only the side that is taken of a choice is evaluated; arguments of calls all are.
    Arguments arguments;
    bool takes_tensors = false;
    for (size_t i = 0; i < node.children.size(); ++i) {
      arguments.emplace_back(node.keywords[i], evaluate(node.children[i]));
      takes_tensors = takes_tensors || holds_tensors(arguments.back().value);
    }
    if (const HostFunction function = find_host_function(node.text, takes_tensors)) {
      Values values;
      for (const Argument& argument : arguments) values.push_back(argument.value);
      return function(values, conversion_, "`" + codegen::text_of(node) + "`");
    }
    return one(node.text, arguments);
  }

  // Of numbers alone a list of these; else a list of tensors.
  Value list(const codegen::Node& node) {
    Values items;
    Ints integers;
    Floats numbers;
    bool all_integers = true, all_numbers = true;
    for (const codegen::Node& child : node.children) {
      items.push_back(evaluate(child));
      const int64_t* integer = items.back().get<int64_t>();
      const double* number = items.back().get<double>();
      all_integers = all_integers && integer;
      all_numbers = all_numbers && (integer || number);
      if (integer) integers.push_back(*integer);
      if (integer || number) numbers.push_back(integer ? static_cast<double>(*integer) : *number);
    }
    if (all_integers) return integers;
    if (all_numbers) return numbers;
    return items;
  }

  Value member(const codegen::Node& node) {
    const Value of = evaluate(node.children[0]);
    const Tensor& tensor = of.tensor("`" + codegen::text_of(node) + "`");
    if (node.text == "shape") return shape_of(tensor);
    if (node.text == "ndim") return int64_t{tensor->ndim};
    if (node.text == "numel") return tensor->numel;
    if (node.text == "dtype") return Dtype{tensor->dtype};
    fail(node, "is no member of tensors");
  }

  Value subscript(const codegen::Node& node) {
    const Value of = evaluate(node.children[0]);
    const std::string what = "`" + codegen::text_of(node) + "`";
    int64_t index = int_of(evaluate(node.children[1]), what);
    const auto at = [&](const auto& items) {
      const auto count = static_cast<int64_t>(items.size());
      return static_cast<size_t>(normal_axis(index, count, what));
    };
    if (const Ints* items = of.get<Ints>()) return (*items)[at(*items)];
    if (const Floats* items = of.get<Floats>()) return (*items)[at(*items)];
    if (const Values* items = of.get<Values>()) return (*items)[at(*items)];
    fail(node, "is for lists");
  }

  Conversion& conversion_;
  std::map<std::string, Value> names_;
};

}  // namespace

Values evaluate(const std::string& text, const std::string& origin, Conversion& conversion) {
  Evaluator evaluator(conversion);
  const codegen::Location where{origin, 0};
  Value result;
  for (size_t start = 0; start <= text.size();) {
    size_t end = text.find('\n', start);
    if (end == std::string::npos) end = text.size();
    const codegen::Step step =
        codegen::parse_step(std::string_view(text).substr(start, end - start), where, "onnx");
    result = evaluator.evaluate(step.expression);
    if (!step.name.empty()) evaluator.bind(step.name, result);
    start = end + 1;
  }
  if (const Values* list = result.get<Values>()) {
    // One result that is a sequence, or several results.
    const bool is_sequence =
        conversion.schema.outputs.size() == 1 && !conversion.schema.outputs[0].is_variadic;
    if (!is_sequence) return *list;
    Values results;
    results.push_back(result);
    return results;
  }
  return {result};
}

}  // namespace tenon::onnx
