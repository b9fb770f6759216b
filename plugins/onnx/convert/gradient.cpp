// SPDX-License-Identifier: Apache-2.0
// Gradient of ai.onnx.preview.training: the nodes that make `y` of `xs` and `zs` run again, on the inputs of this node in the
// place of those, and the program's builder differentiates them.
#include <algorithm>

#include "convert/converters.hpp"
#include "convert/region.hpp"

namespace tenon::onnx {
namespace {

const Texts& names(Conversion& c, const Value& value, const char* attribute) {
  const Texts* list = value.get<Texts>();
  if (!list) c.fail("attribute `" + std::string(attribute) + "`: expected names of tensors");
  return *list;
}

// The nodes in front of this one that make `y`, from given names on.
class Part {
 public:
  Part(Conversion& c, const std::string& y, const std::set<std::string>& given) : given_(given) {
    if (!c.scope.nodes) c.refuse("a gradient outside of a graph");
    const std::vector<Node>& nodes = *c.scope.nodes;
    size_t at = 0;
    while (at < nodes.size() && &nodes[at] != &c.node) ++at;
    read(y);
    while (at-- > 0) {
      const Node& node = nodes[at];
      const bool makes = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](const std::string& name) { return wanted_.count(name); });
      if (!makes) continue;
      chosen_.push_back(at);
      for (const std::string& name : node.inputs) read(name);
      for (const std::string& name : free_names(node)) read(name);
    }
    std::reverse(chosen_.begin(), chosen_.end());
  }

  const std::vector<size_t>& chosen() const { return chosen_; }
  bool reads(const std::string& name) const { return read_.count(name) > 0; }

 private:
  void read(const std::string& name) {
    if (name.empty()) return;
    (given_.count(name) ? read_ : wanted_).insert(name);
  }

  const std::set<std::string>& given_;
  std::set<std::string> wanted_, read_;
  std::vector<size_t> chosen_;
};

}  // namespace

Values convert_gradient(Conversion& c) {
  const Value xs_value = c.attribute("xs"), zs_value = c.attribute("zs");
  const Texts &xs = names(c, xs_value, "xs"),
              zs = zs_value.is_none() ? Texts() : names(c, zs_value, "zs");
  const std::string y = c.text("y");
  Texts given = xs;
  given.insert(given.end(), zs.begin(), zs.end());
  if (c.inputs().size() != given.size())
    c.fail("expected an input for each of the " + std::to_string(given.size()) +
           " names in `xs` and `zs`, got " + std::to_string(c.inputs().size()));
  const std::set<std::string> boundary(given.begin(), given.end());
  if (boundary.size() != given.size()) c.fail("expected each name in `xs` and `zs` once");
  if (boundary.count(y)) c.fail("expected `y` to be no name in `xs` and `zs`, got `" + y + "`");
  const Part part(c, y, boundary);
  for (const std::string& x : xs)
    if (!part.reads(x))
      c.fail("expected nodes of the same graph that make `" + y + "` of `" + x +
             "`, one of `xs`, got none in front of this one");

  Scope scope(c.scope.opsets(), &c.scope);
  scope.arguments = c.scope.arguments;
  scope.nodes = c.scope.nodes;
  std::vector<Tensor> variables;
  for (size_t i = 0; i < given.size(); ++i) {
    Value value = c.inputs()[i];
    if (i < xs.size()) {
      variables.push_back(c.importer.steps().variable(value.tensor("input `" + given[i] + "`")));
      value = variables.back();
    }
    scope.set(given[i], value);
  }
  c.importer.run_again(part.chosen(), scope);
  return c.importer.steps().gradients(scope.find(y)->tensor("`" + y + "`"), variables);
}

}  // namespace tenon::onnx
