// SPDX-License-Identifier: Apache-2.0
#include "emit/python_text.hpp"

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

class ExampleText {
 public:
  ExampleText(const Package& package, const std::string& name_space)
      : package_(package), name_space_(name_space) {}

  std::string text(const Node& node) const {
    switch (node.kind) {
      case NodeKind::Call:
        return call(node);
      case NodeKind::Unary:
        return (node.text == "!" ? "not " : node.text) + text(node.children[0]);
      case NodeKind::Binary:
        return cat("(", text(node.children[0]), " ", node.text, " ", text(node.children[1]), ")");
      case NodeKind::Member:
        return cat(text(node.children[0]), ".", node.text);
      case NodeKind::Subscript:
        return cat(text(node.children[0]), "[", text(node.children[1]), "]");
      default:
        return python_value(node);
    }
  }

 private:
  std::string call(const Node& node) const {
    const Operator* op = package_.find(node.text, name_space_);
    std::string arguments;
    for (size_t i = 0; i < node.children.size(); ++i) {
      const std::string& keyword = node.keywords[i];
      int index = keyword.empty() ? static_cast<int>(i) : op->signature.find_param(keyword);
      if (i > 0) arguments += ", ";
      if (!keyword.empty()) arguments += keyword + "=";
      arguments +=
          argument(node.children[i], op->signature.params[static_cast<size_t>(index)].kind);
    }
    return cat(op->name_space == "tenon" ? "tenon." : cat("tenon.ops.", op->name_space, "."),
               op->name, "(", arguments, ")");
  }

  std::string argument(const Node& node, ParamKind kind) const {
    if (node.kind != NodeKind::List) return text(node);
    if (kind == ParamKind::Tensor) return cat("tensor(", python_value(node), ")");
    if (kind == ParamKind::Tensors)
      return cat("[",
                 join(node.children, ", ",
                      [&](const Node& child) { return argument(child, ParamKind::Tensor); }),
                 "]");
    return python_value(node);
  }

  const Package& package_;
  const std::string& name_space_;
};

std::string number_text(const Node& node) {
  // "1." is Python too, but reads badly.
  return node.text.back() == '.' ? node.text + "0" : node.text;
}

}  // namespace

std::string python_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result + "\"";
}

std::string python_default(const Param& param) {
  const std::string& text = param.default_text;
  if (text == "none") return "None";
  if (text == "true") return "True";
  if (text == "false") return "False";
  if (text == "inf" || text == "-inf" || text == "nan") return cat("float(\"", text, "\")");
  if (param.kind == ParamKind::Dtype) return "tenon." + text;
  return text;
}

std::string python_value(const Node& node) {
  switch (node.kind) {
    case NodeKind::Integer:
      return node.text;
    case NodeKind::Float:
      return number_text(node);
    case NodeKind::Boolean:
      return node.boolean ? "True" : "False";
    case NodeKind::None:
      return "None";
    case NodeKind::String:
      return python_string(node.text);
    case NodeKind::Name:
      return node.is_infinity_or_nan() ? node.text : "tenon." + node.text;
    case NodeKind::Unary:
      return node.text + python_value(node.children[0]);
    case NodeKind::Binary:
      return cat("(", python_value(node.children[0]), " ", node.text, " ",
                 python_value(node.children[1]), ")");
    case NodeKind::List:
      return cat("[", join(node.children, ", ", python_value), "]");
    case NodeKind::Tuple:
      return cat("(", join(node.children, ", ", python_value), ")");
    default:
      return text_of(node);
  }
}

std::string python_sample_argument(const Node& node, ParamKind kind) {
  if (kind == ParamKind::Tensors)
    return cat(
        "[",
        join(node.children, ", ",
             [](const Node& child) { return python_sample_argument(child, ParamKind::Tensor); }),
        "]");
  if (node.kind == NodeKind::List && kind == ParamKind::Tensor)
    return cat("array(", python_value(node), ")");
  if (node.kind == NodeKind::Call) {
    std::vector<std::string> arguments;
    for (size_t i = 0; i < node.children.size(); ++i) {
      const bool named = !node.keywords[i].empty();
      arguments.push_back(named ? cat(node.keywords[i], "=", python_string(node.children[i].text))
                                : python_value(node.children[i]));
    }
    return cat(node.text, "(", join(arguments, ", "), ")");
  }
  if (node.kind == NodeKind::Name && !node.is_infinity_or_nan()) return python_string(node.text);
  return python_value(node);
}

std::string python_call(const Node& node, const Package& package, const std::string& name_space) {
  return ExampleText(package, name_space).text(node);
}

}  // namespace tenon::codegen
