// SPDX-License-Identifier: Apache-2.0
// Calls as Python. Infix on tensors is a call of an operator, on anything else it is Python's.
#include <algorithm>
#include <set>

#include "bridge/bridge.hpp"
#include "emit/python_text.hpp"
#include "expression/operator_names.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

std::string python_name(const std::string& name) {
  static const std::set<std::string> reserved = {"and",    "as",   "call", "def",  "del",
                                                 "for",    "from", "if",   "in",   "is",
                                                 "lambda", "not",  "or",   "tenon"};
  return reserved.contains(name) ? name + "_" : name;
}

class Text {
 public:
  explicit Text(const BridgeCall& call) {
    for (const std::string& name : call.params) {
      own_.insert(name);
      if (call.signature->find(name)->holds_tensors()) tensors_.insert(name);
    }
  }

  void add_step(const Step& step) {
    if (is_tensor(step.expression)) tensors_.insert(step.name);
    own_.insert(step.name);
  }

  std::string of(const Node& node) const {
    switch (node.kind) {
      case NodeKind::Name:
        // A parameter may be called `nan`, and then means itself.
        return node.is_infinity_or_nan() && !own_.contains(node.text)
                   ? cat("float(\"", node.text, "\")")
                   : name(node.text);
      case NodeKind::Unary:
        if (is_tensor(node.children[0]) && node.text != "!")
          return cat("call(\"", operator_of_sign(node.text, true), "\", ", of(node.children[0]),
                     ")");
        return cat("(", node.text == "!" ? "not " : node.text, of(node.children[0]), ")");
      case NodeKind::Binary:
        return binary(node);
      case NodeKind::Conditional:
        return cat("(", of(node.children[1]), " if ", of_condition(node.children[0]), " else ",
                   of(node.children[2]), ")");
      case NodeKind::Call:
        if (is_length(node)) return cat("len(", of(node.children[0]), ")");
        return cat("call(\"", node.text, "\"", arguments(node), ")");
      case NodeKind::List:
        return cat("[", join(node.children, ", ", [&](const Node& child) { return of(child); }),
                   "]");
      case NodeKind::Member:
        return cat(of(node.children[0]), ".", node.text, node.text == "numel" ? "()" : "");
      case NodeKind::Subscript:
        return cat(of(node.children[0]), "[", of(node.children[1]), "]");
      default:
        return python_value(node);
    }
  }

  // A condition holds or does not while a program is built: its connectives are Python's, whatever
  // they connect.
  std::string of_condition(const Node& node) const {
    if (node.kind == NodeKind::Binary && (node.text == "&&" || node.text == "||"))
      return cat("(", of_condition(node.children[0]), node.text == "&&" ? " and " : " or ",
                 of_condition(node.children[1]), ")");
    if (node.kind == NodeKind::Unary && node.text == "!")
      return cat("(not ", of_condition(node.children[0]), ")");
    return of(node);
  }

 private:
  std::string name(const std::string& text) const {
    if (!own_.contains(text) && schema::find_dtype(text)) return "tenon." + text;
    return python_name(text);
  }

  static bool is_question_of_none(const Node& node) {
    return node.children[0].kind == NodeKind::None || node.children[1].kind == NodeKind::None;
  }

  // Does it hold a tensor that an operator may be asked of?
  bool is_tensor(const Node& node) const {
    switch (node.kind) {
      case NodeKind::Name:
        return tensors_.contains(node.text);
      case NodeKind::Call:
        return !is_length(node);
      case NodeKind::Unary:
        return is_tensor(node.children[0]);
      case NodeKind::Binary:
        return !is_question_of_none(node) &&
               (is_tensor(node.children[0]) || is_tensor(node.children[1]));
      case NodeKind::Conditional:
        return is_tensor(node.children[1]) || is_tensor(node.children[2]);
      case NodeKind::Subscript:
        return node.children[0].kind == NodeKind::Call;
      default:
        return false;
    }
  }

  std::string binary(const Node& node) const {
    const Node &left = node.children[0], &right = node.children[1];
    if (is_question_of_none(node))
      return cat("(", of(left), node.text == "==" ? " is " : " is not ", of(right), ")");
    if (is_tensor(node))
      return cat("call(\"", operator_of_sign(node.text, false), "\", ", of(left), ", ", of(right),
                 ")");
    std::string sign = node.text;
    if (sign == "&&") sign = "and";
    if (sign == "||") sign = "or";
    return cat("(", of(left), " ", sign, " ", of(right), ")");
  }

  std::string arguments(const Node& node) const {
    std::string text;
    for (size_t i = 0; i < node.children.size(); ++i)
      text +=
          cat(", ", node.keywords[i].empty() ? "" : node.keywords[i] + "=", of(node.children[i]));
    return text;
  }

  std::set<std::string> own_, tensors_;  // names of the line, and those among them of tensors
};

std::string parameters(const BridgeCall& call) {
  return join(call.params, "",
              [](const std::string& name) { return cat(", ", python_name(name)); });
}

std::string emit_case(const BridgeCall& call, const BridgeCase& each, size_t index,
                      std::string& functions) {
  std::string stem = call.signature->name;
  std::replace(stem.begin(), stem.end(), '.', '_');
  const std::string name = cat("_", stem, "_", index);
  Text text(call);
  std::string when = "None";
  if (each.when) {
    when = name + "_when";
    functions += cat("def ", when, "(_", parameters(call), "):\n    return ",
                     text.of_condition(*each.when), "\n\n\n");
  }
  std::string function = "None";
  if (!each.steps.empty()) {
    function = name;
    functions += cat("def ", name, "(call", parameters(call), "):\n");
    for (const Step& step : each.steps) {
      functions += cat("    ", step.name.empty() ? "return " : python_name(step.name) + " = ",
                       text.of(step.expression), "\n");
      text.add_step(step);
    }
    functions += "\n\n";
  }
  return cat("(", when, ", ", function, ", ", python_string(each.native), ", ",
             python_string(each.refuse), ", ", python_string(each.where.origin()), ")");
}

}  // namespace

OutputFile emit_bridge(const Bridge& bridge, const ForeignSignatures& signatures) {
  std::string functions, table;
  for (const BridgeCall& call : bridge.calls) {
    std::string cases;
    for (size_t i = 0; i < call.cases.size(); ++i)
      cases += cat("        ", emit_case(call, call.cases[i], i, functions), ",\n");
    const std::string names =
        join(call.params, "", [](const std::string& name) { return python_string(name) + ", "; });
    table += cat("    ", python_string(call.signature->name), ": ((", names, "), (\n", cases,
                 "    )),\n");
  }
  std::string parameters_table, core;
  for (const auto& [name, signature] : signatures) {
    // The pointer: clang before 16 lets no lambda capture a structured binding.
    const bool is_told =
        std::any_of(bridge.calls.begin(), bridge.calls.end(),
                    [told = &signature](const BridgeCall& call) { return call.signature == told; });
    if (signature.is_core) core += cat("    ", python_string(name), ",\n");
    if (!is_told) continue;
    parameters_table += cat("    ", python_string(name), ": (");
    for (const ForeignParam& param : signature.params)
      parameters_table += cat("(", python_string(param.name), ", ", python_string(param.type), ", ",
                              param.default_text.empty() ? "..." : param.default_text, "), ");
    parameters_table += "),\n";
  }
  const std::string text =
      cat("# Generated by tenon-codegen from opdefs/", bridge.library,
          ". Do not edit.\n\"\"\"Calls of ", bridge.library,
          " in terms of operators: parameters that a line is about, and its cases (when, as, "
          "native, refuse, origin).\"\"\"\n\nimport tenon\n\n\n",
          functions, "CALLS = {\n", table, "}\n\nPARAMETERS = {\n", parameters_table,
          "}\n\n# The set to which the library breaks all others down.\nCORE = (\n", core, ")\n");
  return {cat("python/_", bridge.library, "_calls.py"), text};
}

}  // namespace tenon::codegen
