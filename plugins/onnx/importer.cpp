// SPDX-License-Identifier: Apache-2.0
#include "importer.hpp"

#include <algorithm>

#include "convert/narrow.hpp"
#include "convert/text.hpp"
#include "expression.hpp"
#include "reader/reader.hpp"
#include "text/texts.hpp"

namespace tenon::onnx {
namespace {

int64_t opset_of(const Opsets& opsets, const std::string& domain) {
  const auto found = opsets.find(domain);
  return found == opsets.end() ? 0 : found->second;
}

std::string name_of(const Node& node) {
  return (node.domain.empty() ? "" : node.domain + "::") + node.op_type;
}

// As the table has it: with the domain, where that is another than ai.onnx.
std::string table_name(const Node& node) {
  return (node.domain.empty() ? "" : node.domain + ".") + node.op_type;
}

// One more level for as long as it lives.
class Level {
 public:
  explicit Level(int& depth) : depth_(depth) {
    if (++depth_ > kMaxCalls)
      throw Error(TENON_INVALID_ARGUMENT,
                  "expected functions and graphs at most " + std::to_string(kMaxCalls) +
                      " deep in each other, got deeper ones; does a function call itself?");
  }
  ~Level() { --depth_; }

 private:
  int& depth_;
};

// Steps see this of sizes for as long as it lives.
class Seeing {
 public:
  Seeing(Steps& steps, SeenSizes seen) : steps_(steps), before_(steps.see_sizes(seen)) {}
  ~Seeing() { steps_.see_sizes(before_); }
  Seeing(const Seeing&) = delete;
  Seeing& operator=(const Seeing&) = delete;

 private:
  Steps& steps_;
  const SeenSizes before_;
};

void for_each_graph(const Node& node, const auto& visit) {
  for (const Attribute& attribute : node.attributes)
    if (attribute.graph) visit(*attribute.graph);
}

}  // namespace

const Value* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer_) {
    const auto found = scope->values_.find(name);
    if (found != scope->values_.end()) return &found->second;
  }
  return nullptr;
}

Importer::Importer(const Model& model, ModelFiles& files, const ImportOptions& options)
    : model_(model), files_(files), options_(options), table_(Table::read()) {}

const Function* Importer::find_function(const Node& node) const {
  for (const Function& function : model_.functions)
    if (function.name == node.op_type && function.domain == node.domain &&
        function.overload == node.overload)
      return &function;
  return nullptr;
}

void Importer::check_nodes(const std::vector<Node>& nodes, const Opsets& opsets,
                           std::set<std::string>& problems, int depth) const {
  if (depth > kMaxCalls) return;
  for (const Node& node : nodes) {
    for_each_graph(
        node, [&](const Graph& graph) { check_nodes(graph.nodes, opsets, problems, depth + 1); });
    if (find_function(node)) continue;
    const int64_t opset = opset_of(opsets, node.domain);
    const std::string name = name_of(node);
    if (!node.domain.empty() && !table_.has_domain(node.domain)) {
      problems.insert(name +
                      ": its domain is none of ONNX's, and the model has no function of this name");
      continue;
    }
    if (opset == 0) {
      problems.insert(name + ": the model imports no opset of " +
                      (node.domain.empty() ? "ai.onnx" : node.domain));
      continue;
    }
    const Schema* schema = table_.find(table_name(node), opset);
    if (!schema) {
      problems.insert(name + ": there is none in opset " + std::to_string(opset) +
                      table_.nearest(table_name(node)));
    } else if (const Refusal* refusal = table_.refusal(*schema)) {
      problems.insert(name + " (since opset " + std::to_string(schema->since) +
                      "): " + refusal->reason);
    } else if (!table_.claim(*schema)) {
      problems.insert(name + " (since opset " + std::to_string(schema->since) +
                      "): nothing imports it");
    }
  }
}

void Importer::check_operators() const {
  std::set<std::string> problems;
  check_nodes(model_.graph.nodes, model_.opsets, problems, 0);
  for (const Function& function : model_.functions)
    check_nodes(function.nodes, function.opsets, problems, 0);
  if (problems.empty()) return;
  std::string text = "expected operators that can be imported, got";
  for (const std::string& problem : problems) text += "\n  " + problem;
  throw Error(TENON_UNSUPPORTED, text);
}

Ints Importer::input_shape(const std::string& name, const Type& type) const {
  const auto given = options_.shapes.find(name);
  if (given != options_.shapes.end() && given->second.size() == 1) {
    const Ints& shape = given->second[0];
    if (type.shape && type.shape->size() != shape.size())
      throw Error(TENON_INVALID_ARGUMENT, "input `" + name + "`: expected a shape of " +
                                              std::to_string(type.shape->size()) + " axes, got " +
                                              std::to_string(shape.size()));
    for (size_t i = 0; type.shape && i < shape.size(); ++i)
      if ((*type.shape)[i].size && *(*type.shape)[i].size != shape[i])
        throw Error(TENON_INVALID_ARGUMENT, "input `" + name + "`: expected size " +
                                                std::to_string(*(*type.shape)[i].size) +
                                                " of axis " + std::to_string(i) + ", got " +
                                                std::to_string(shape[i]));
    return shape;
  }
  if (!type.shape)
    throw Error(TENON_INVALID_ARGUMENT, "input `" + name +
                                            "`: its number of axes is open; expected its shape, "
                                            "as shapes={\"" +
                                            name + "\": ...}");
  Ints shape;
  for (size_t i = 0; i < type.shape->size(); ++i) {
    const Type::Dimension& dimension = (*type.shape)[i];
    const auto size = options_.sizes.find(dimension.name);
    if (dimension.size && *dimension.size >= 0) {
      shape.push_back(*dimension.size);
    } else if (!dimension.name.empty() && size != options_.sizes.end()) {
      shape.push_back(size->second);
    } else if (!dimension.name.empty()) {
      throw Error(TENON_INVALID_ARGUMENT, "input `" + name + "`: the size of axis " +
                                              std::to_string(i) + ", `" + dimension.name +
                                              "`, is open; expected it, as sizes={\"" +
                                              dimension.name + "\": ...}");
    } else {
      throw Error(TENON_INVALID_ARGUMENT,
                  "input `" + name + "`: the size of axis " + std::to_string(i) +
                      " is open; expected a shape, as shapes={\"" + name + "\": ...}");
    }
  }
  return shape;
}

Value Importer::make_input(const std::string& name, const Type& type) {
  if (type.kind == Type::Optional && type.element) return make_input(name, *type.element);
  if (type.kind == Type::Sequence && type.element && type.element->kind == Type::Tensor) {
    const auto given = options_.shapes.find(name);
    if (given == options_.shapes.end())
      throw Error(TENON_INVALID_ARGUMENT,
                  "input `" + name +
                      "`: a sequence; expected the shapes of its tensors, as "
                      "shapes={\"" +
                      name + "\": [...]}");
    Values list;
    const int32_t dtype = dtype_of(type.element->element_type, "input `" + name + "`");
    for (const Ints& shape : given->second)
      list.emplace_back(add_input(name + "." + std::to_string(list.size()), dtype, shape));
    return list;
  }
  if (type.kind != Type::Tensor)
    throw Error(TENON_UNSUPPORTED,
                "input `" + name + "`: expected a tensor or a sequence of tensors");
  const int32_t dtype = dtype_of(type.element_type, "input `" + name + "`");
  Tensor input = add_input(name, dtype, input_shape(name, type));
  set_element_type(input, type.element_type);
  return input;
}

Tensor Importer::add_input(const std::string& name, int32_t dtype, const Ints& shape) {
  input_names_.push_back(name);
  return steps_.input(dtype, shape);
}

int32_t Importer::element_type(const Tensor& tensor) const {
  const auto found = narrow_.find(tensor.get());
  return found == narrow_.end() ? element_type_of(tensor->dtype) : found->second.second;
}

void Importer::set_element_type(const Tensor& tensor, int32_t element_type) {
  if (find_narrow(element_type))
    narrow_.insert_or_assign(tensor.get(), std::pair(tensor, element_type));
}

void Importer::add_initializers(const Graph& graph, Scope& scope) {
  for (const std::shared_ptr<const TensorData>& data : graph.initializers) {
    Value value = files_.value(*data);
    const Tensor* tensor = value.get<Tensor>();
    const bool is_small =
        tensor && (*tensor)->numel * static_cast<int64_t>(host->dtype_size((*tensor)->dtype)) <=
                      kMaxKnownBytes;
    if (tensor && !is_small) value = current_->leaf(*tensor, data->name);
    if (const Tensor* made = value.get<Tensor>()) set_element_type(*made, data->type);
    scope.set(data->name, std::move(value));
  }
}

void Importer::add_inputs(const Graph& graph, Scope& scope) {
  // Before IR 4 initializers are inputs, too.
  std::set<std::string> initialized;
  for (const auto& data : graph.initializers) initialized.insert(data->name);
  for (const NamedType& input : graph.inputs) {
    if (initialized.count(input.name)) continue;
    if (input.type.kind == Type::Tensor &&
        input.type.element_type == static_cast<int32_t>(ElementType::String)) {
      scope.set(input.name, text_input(input.name, input.type));
      continue;
    }
    const auto constant = options_.constants.find(input.name);
    scope.set(input.name, constant == options_.constants.end()
                              ? make_input(input.name, input.type)
                              : make_constant(input.name, input.type, constant->second));
  }
}

Value Importer::text_input(const std::string& name, const Type& type) const {
  const auto given = options_.texts.find(name);
  if (given == options_.texts.end())
    throw Error(
        TENON_UNSUPPORTED,
        "input `" + name +
            "`: text, which has to be known when the model is loaded; expected it, as values={\"" +
            name + "\": [...]}, or tenon.onnx.Runner, which loads the model for each call");
  const Ints shape = shape_of(given->second.codes);
  bool fits = !type.shape || type.shape->size() == shape.size();
  for (size_t i = 0; fits && type.shape && i < shape.size(); ++i)
    fits = !(*type.shape)[i].size || *(*type.shape)[i].size == shape[i];
  if (!fits)
    throw Error(TENON_INVALID_ARGUMENT, "input `" + name + "`: expected texts of its shape, got " +
                                            Value(given->second).describe());
  return given->second;
}

Value Importer::make_constant(const std::string& name, const Type& type, const Tensor& value) {
  const int32_t dtype = dtype_of(type.element_type, "input `" + name + "`");
  if (type.kind != Type::Tensor || value->dtype != dtype)
    throw Error(TENON_INVALID_ARGUMENT, "input `" + name + "`: expected a value of " +
                                            host->dtype_name(dtype) + ", got " +
                                            describe(*value.get()));
  set_element_type(value, type.element_type);
  return value;
}

Value Importer::result_of(const std::string& name, const Scope& scope) const {
  const Value* found = scope.find(name);
  if (!found)
    throw Error(TENON_INVALID_ARGUMENT,
                "expected result `" + name + "` to be made by a node, an input or an initializer");
  return *found;
}

tenon_graph_program* Importer::run(std::vector<Result>& results) {
  check_operators();
  Scope scope(model_.opsets);
  add_inputs(model_.graph, scope);
  add_initializers(model_.graph, scope);
  run_nodes(model_.graph.nodes, scope);
  std::vector<Tensor> tensors;
  for (const NamedType& output : model_.graph.outputs) {
    const Value value = result_of(output.name, scope);
    if (const Values* list = value.get<Values>()) {
      for (size_t i = 0; i < list->size(); ++i) {
        result_names_.push_back(output.name + "." + std::to_string(i));
        tensors.push_back((*list)[i].tensor("result `" + output.name + "`"));
      }
      results.push_back({Result::kSequence, list->size(), nullptr});
    } else if (const Text* text = value.get<Text>()) {
      if (!options_.may_return_text)
        throw Error(
            TENON_UNSUPPORTED,
            "result `" + output.name +
                "`: text, which no tensor holds; tenon.onnx.load gives such results as lists");
      result_names_.push_back(output.name);
      tensors.push_back(text->codes);
      results.push_back({Result::kText, 1, text->vocabulary});
    } else {
      result_names_.push_back(output.name);
      tensors.push_back(value.tensor("result `" + output.name + "`"));
      results.push_back({});
    }
  }
  for (Tensor& tensor : tensors) tensor = steps_.result(tensor);
  return steps_.finish(tensors);
}

Values Importer::run_graph(const Graph& graph, Scope& outer, const Values& inputs) {
  const Level level(depth_);
  if (inputs.size() != graph.inputs.size())
    throw Error(TENON_INVALID_ARGUMENT, "graph `" + graph.name + "`: expected " +
                                            std::to_string(graph.inputs.size()) + " inputs, got " +
                                            std::to_string(inputs.size()));
  Scope scope(outer.opsets(), &outer);
  scope.arguments = outer.arguments;
  for (size_t i = 0; i < inputs.size(); ++i) scope.set(graph.inputs[i].name, inputs[i]);
  add_initializers(graph, scope);
  run_nodes(graph.nodes, scope);
  Values results;
  for (const NamedType& output : graph.outputs) results.push_back(result_of(output.name, scope));
  return results;
}

void Importer::run_nodes(const std::vector<Node>& nodes, Scope& scope) {
  scope.nodes = &nodes;
  for (size_t i = 0; i < nodes.size(); ++i) run_node(nodes, i, scope);
}

void Importer::run_again(const std::vector<size_t>& indices, Scope& scope) {
  const Level level(depth_);
  for (size_t index : indices) run_node(*scope.nodes, index, scope);
}

void Importer::run_node(const std::vector<Node>& nodes, size_t index, Scope& scope) {
  const Node& node = nodes[index];
  try {
    if (++nodes_ > kMaxNodes)
      throw Error(TENON_INVALID_ARGUMENT, "expected at most " + std::to_string(kMaxNodes) +
                                              " nodes with those of functions and loops, got more");
    run_node(node, scope);
  } catch (const Error& error) {
    throw Error(error.code(), "node " + std::to_string(index) +
                                  (node.name.empty() ? "" : " \"" + node.name + "\"") + " (" +
                                  name_of(node) + ", opset " +
                                  std::to_string(opset_of(scope.opsets(), node.domain)) +
                                  "): " + error.what());
  }
}

void Importer::run_node(const Node& node, Scope& scope) {
  Values inputs;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      inputs.emplace_back();
      continue;
    }
    const Value* found = scope.find(name);
    if (!found)
      throw Error(TENON_INVALID_ARGUMENT, "expected input `" + name +
                                              "` to be made by an earlier node, an input or an "
                                              "initializer");
    inputs.push_back(*found);
  }
  const Function* function = find_function(node);
  Values results = function ? call_function(*function, node, scope, std::move(inputs))
                            : convert(node, scope, std::move(inputs));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= results.size())
      throw Error(TENON_UNSUPPORTED, "expected at most " + std::to_string(results.size()) +
                                         " results to be used, got result " + std::to_string(i) +
                                         ", `" + node.outputs[i] + "`");
    scope.set(node.outputs[i], std::move(results[i]));
  }
}

std::vector<Attribute> Importer::attributes_of(const Node& node, const Scope& scope) const {
  std::vector<Attribute> attributes;
  for (const Attribute& attribute : node.attributes) {
    if (attribute.reference.empty()) {
      attributes.push_back(attribute);
      continue;
    }
    if (!scope.arguments) continue;
    for (const Attribute& argument : *scope.arguments)
      if (argument.name == attribute.reference) {
        attributes.push_back(argument);
        attributes.back().name = attribute.name;
      }
  }
  return attributes;
}

Values Importer::call_function(const Function& function, const Node& node, Scope& scope,
                               Values inputs) {
  const Level level(depth_);
  std::vector<Attribute> attributes = attributes_of(node, scope);
  for (const Attribute& standard : function.defaulted) {
    const bool is_given =
        std::any_of(attributes.begin(), attributes.end(),
                    [&](const Attribute& one) { return one.name == standard.name; });
    if (!is_given) attributes.push_back(standard);
  }
  if (inputs.size() > function.inputs.size())
    throw Error(TENON_INVALID_ARGUMENT,
                "expected at most " + std::to_string(function.inputs.size()) +
                    " inputs of the function, got " + std::to_string(inputs.size()));
  inputs.resize(function.inputs.size());
  Scope inner(function.opsets);
  inner.arguments = &attributes;
  for (size_t i = 0; i < inputs.size(); ++i) inner.set(function.inputs[i], inputs[i]);
  run_nodes(function.nodes, inner);
  Values results;
  for (const std::string& output : function.outputs) results.push_back(result_of(output, inner));
  return results;
}

SeenSizes Importer::seen_by(const Node& node, const Values& inputs) const {
  if (!options_.is_sample) return SeenSizes::kNone;
  bool has_values = false;
  for (const Value& input : inputs) {
    const Tensor* tensor = input.get<Tensor>();
    if (!tensor) continue;
    if (current_->follows_from_sizes(*tensor)) return SeenSizes::kNumbers;
    has_values = has_values || !is_known(*tensor);
  }
  if (!has_values) return SeenSizes::kNone;
  const bool is_shape = node.op_type == "Shape" || node.op_type == "Size";
  return is_shape && node.domain.empty() ? SeenSizes::kNumbers : SeenSizes::kValues;
}

Values Importer::convert(const Node& node, Scope& scope, Values inputs) {
  const SeenSizes seen = seen_by(node, inputs);
  Steps& steps = *current_;
  Values results;
  {
    const Seeing seeing(steps, seen);
    results = converted(node, scope, std::move(inputs));
  }
  if (seen == SeenSizes::kNumbers)
    for (const Value& result : results)
      if (const Tensor* tensor = result.get<Tensor>(); tensor && is_known(*tensor))
        steps.add_sizes(*tensor);
  return results;
}

Values Importer::converted(const Node& node, Scope& scope, Values inputs) {
  const int64_t opset = opset_of(scope.opsets(), node.domain);
  const std::string name = table_name(node);
  const Schema* schema = table_.find(name, opset);
  const Claim* claim = schema ? table_.claim(*schema) : nullptr;
  if (!claim) throw Error(TENON_UNSUPPORTED, "nothing imports this operator");
  const auto with = [&](Values given) {
    Conversion conversion(node, *schema, opset, std::move(given), attributes_of(node, scope), *this,
                          scope);
    if (claim->kind == Claim::Expression) return evaluate(claim->text, claim->origin, conversion);
    const Converter converter = find_converter(claim->text);
    if (!converter)
      throw Error(TENON_INTERNAL, claim->origin + ": there is no converter `" + claim->text + "`");
    return converter(conversion);
  };
  const bool has_text = std::any_of(inputs.begin(), inputs.end(),
                                    [](const Value& input) { return input.get<Text>(); });
  if (!has_text || !moves_text(name)) return with(std::move(inputs));
  Conversion conversion(node, *schema, opset, inputs, attributes_of(node, scope), *this, scope);
  return with_numbers(conversion, inputs, name, with);
}

}  // namespace tenon::onnx
