// SPDX-License-Identifier: Apache-2.0
#include "convert/region.hpp"

#include <algorithm>

namespace tenon::onnx {
namespace {

// Names that a graph reads and does not make, in the order in which it reads them.
void find_free(const Graph& graph, std::set<std::string> made, std::vector<std::string>& free,
               int depth) {
  if (depth > kMaxCalls) return;
  for (const NamedType& input : graph.inputs) made.insert(input.name);
  for (const auto& data : graph.initializers) made.insert(data->name);
  for (const Node& node : graph.nodes)
    for (const std::string& output : node.outputs) made.insert(output);
  const auto read = [&](const std::string& name) {
    if (!name.empty() && !made.count(name)) free.push_back(name);
  };
  for (const Node& node : graph.nodes) {
    for (const std::string& name : node.inputs) read(name);
    for (const Attribute& attribute : node.attributes)
      if (attribute.graph) find_free(*attribute.graph, made, free, depth + 1);
  }
  for (const NamedType& output : graph.outputs) read(output.name);
}

Ints without_first(const Tensor& tensor) {
  return Ints(tensor->shape + 1, tensor->shape + tensor->ndim);
}

}  // namespace

std::vector<std::string> free_names(const Node& node) {
  std::vector<std::string> free;
  for (const Attribute& attribute : node.attributes)
    if (attribute.graph) find_free(*attribute.graph, {}, free, 0);
  return free;
}

Captures::Captures(const std::vector<const Graph*>& graphs, const Scope& scope) {
  std::vector<std::string> free;
  for (const Graph* graph : graphs) find_free(*graph, {}, free, 0);
  std::set<std::string> seen;
  for (const std::string& name : free) {
    const Value* value = seen.insert(name).second ? scope.find(name) : nullptr;
    if (!value) continue;  // the node that reads it says so
    names_.emplace_back(name, *value);
    add(*value);
  }
}

void Captures::add(const Value& value) {
  if (const Values* list = value.get<Values>())
    for (const Value& item : *list) add(item);
  if (const Text* text = value.get<Text>()) add(text->codes);
  const Tensor* tensor = value.get<Tensor>();
  if (!tensor || is_known(*tensor)) return;
  const bool is_there = std::any_of(operands_.begin(), operands_.end(),
                                    [&](const Tensor& one) { return one.get() == tensor->get(); });
  if (!is_there) operands_.push_back(*tensor);
}

Value Captures::replaced(const Value& value, const std::vector<Tensor>& inputs) const {
  if (const Values* list = value.get<Values>()) {
    Values items;
    for (const Value& item : *list) items.push_back(replaced(item, inputs));
    return items;
  }
  if (const Text* text = value.get<Text>()) {
    const Value codes = replaced(text->codes, inputs);
    return Text{*codes.get<Tensor>(), text->vocabulary};
  }
  if (const Tensor* tensor = value.get<Tensor>())
    for (size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].get() == tensor->get()) return inputs.at(i);
  return value;
}

Region::Region(Conversion& c)
    : c_(c), outer_(c.importer.use_steps(&steps_)), scope_(c.scope.opsets(), &c.scope) {
  scope_.arguments = c.scope.arguments;
}

Region::~Region() { c_.importer.use_steps(outer_); }

Tensor Region::input(const Tensor& like) { return steps_.input(like->dtype, shape_of(like)); }

Tensor Region::element_input(const Tensor& like) {
  return steps_.input(like->dtype, without_first(like));
}

void Region::capture(const Captures& captures) {
  captures_ = &captures;
  for (const Tensor& operand : captures.operands()) inputs_.push_back(input(operand));
  for (const auto& [name, value] : captures.names()) scope_.set(name, inside(value));
}

Value Region::inside(const Value& value) const { return captures_->replaced(value, inputs_); }

Values Region::run(const Graph& graph, const Values& inputs) {
  return c_.importer.run_graph(graph, scope_, inputs);
}

OwnedProgram Region::finish(const Values& results) {
  std::vector<Tensor> tensors;
  for (const Value& result : results)
    tensors.push_back(steps_.result(result.tensor("a result of a branch or body")));
  return OwnedProgram(steps_.finish(tensors));
}

Value known_truth(bool truth) {
  Tensor made = make_known(TENON_DTYPE_BOOL, {});
  *static_cast<bool*>(made->data) = truth;
  return made;
}

Value truth_of(Conversion& c, const Value& value, const std::string& name) {
  Tensor tensor = value.tensor(name);
  if (tensor->numel != 1)
    c.fail("`" + name + "`: expected one element, got a tensor of " + describe(*tensor.get()));
  if (tensor->ndim != 0) tensor = c.call("reshape", {tensor, Ints{}});
  return c.cast(tensor, TENON_DTYPE_BOOL);
}

std::string types_text(const Values& values) {
  std::string text;
  for (const Value& value : values) {
    const Tensor* tensor = value.get<Tensor>();
    text += (text.empty() ? "" : ", ") + (tensor ? describe(*tensor->get()) : value.describe());
  }
  return text.empty() ? "nothing" : text;
}

bool have_same_types(const Values& a, const Values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Value& x, const Value& y) {
    const Tensor *one = x.get<Tensor>(), *other = y.get<Tensor>();
    return one && other && (*one)->dtype == (*other)->dtype && shape_of(*one) == shape_of(*other);
  });
}

}  // namespace tenon::onnx
