// SPDX-License-Identifier: Apache-2.0
#include "load/onnx.hpp"

#include <algorithm>

#include "expression/parser.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

const Param& param_of(const Operator& op, const std::string& name, const Location& where) {
  const int index = op.signature.find_param(name);
  if (index >= 0) return op.signature.params[static_cast<size_t>(index)];
  std::vector<std::string> names;
  for (const Param& param : op.signature.params) names.push_back(param.name);
  throw Error(where, cat("`onnx`: no parameter `", name, "`", did_you_mean(name, names),
                         "; the operator has ", join(names, " ")));
}

// What an attribute is for export, turned around: `keepdim`, `!upper`, `approximate ? 'tanh' : 'none'`.
std::string inverted(const Operator& op, const std::string& attribute, const std::string& text,
                     const Location& where) {
  const Node node = parse_expression(text, where, "onnx");
  if (node.kind == NodeKind::Name) {
    param_of(op, node.text, where);
    return cat(node.text, "=", attribute);
  }
  if (node.kind == NodeKind::Unary && node.text == "!" && node.children[0].kind == NodeKind::Name) {
    param_of(op, node.children[0].text, where);
    return cat(node.children[0].text, "=!", attribute);
  }
  if (node.kind == NodeKind::Conditional && node.children[0].kind == NodeKind::Name &&
      node.children[1].kind == NodeKind::String) {
    param_of(op, node.children[0].text, where);
    return cat(node.children[0].text, "=", attribute, " == '", node.children[1].text, "'");
  }
  throw Error(where,
              cat("`onnx`: attribute `", attribute,
                  "`: expected a parameter, `!parameter` or `parameter ? 'a' : 'b'`, which can be "
                  "turned around, got `",
                  text, "`; write `import` in opdefs/onnx for what cannot"));
}

int64_t read_since(const YamlEntry& map) {
  const std::string text = map.text_or("since", "1");
  const bool is_number =
      !text.empty() && text.size() < 4 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number || text == "0")
    throw Error(map.where("since"), cat("`since`: expected an opset, got `", text, "`"));
  return std::stoll(text);
}

OnnxLine read_line(const YamlEntry& map, const Operator& op) {
  map.check_keys({"op", "since", "args", "known", "attrs", "native"});
  OnnxLine line;
  line.where = map.where();
  line.name = map.text("op");
  line.since = read_since(map);
  if (map.has("native")) {
    if (map.has("args") || map.has("known") || map.has("attrs"))
      throw Error(line.where, "`onnx`: a `native` line has no args, known or attrs");
    line.is_native = true;
    line.text = map.text("native");
    return line;
  }
  std::vector<std::string> arguments;
  std::vector<std::string> args;
  if (map.has("args")) {
    for (const auto& [name, where] : map.scalars(map.find("args"), "args")) args.push_back(name);
  } else {
    for (const Param& param : op.signature.params)
      if (param.holds_tensors()) args.push_back(param.name);
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const Param& param = param_of(op, args[i], line.where);
    const bool is_list = param.holds_tensors() && !param.is_tensor();
    arguments.push_back(cat(args[i], "=", is_list ? "inputs" : cat("input(", i, ")")));
  }
  if (map.has("known"))
    for (const auto& [input, value] : YamlEntry(map.find("known"), op.file, "known").items()) {
      const std::string param = map.scalar(value, "known");
      param_of(op, param, line.where);
      arguments.push_back(cat(param, "=", input));
    }
  if (map.has("attrs"))
    for (const auto& [attribute, value] : YamlEntry(map.find("attrs"), op.file, "attrs").items())
      arguments.push_back(inverted(op, attribute, map.scalar(value, "attrs"), line.where));
  line.text = cat(op.name_space == "tenon" ? op.name : op.qualified_name(), "(",
                  join(arguments, ", "), ")");
  return line;
}

}  // namespace

void read_onnx(const YamlEntry& entry, Operator& op) {
  if (!entry.has("onnx")) return;
  const YAML::Node node = entry.find("onnx");
  if (!node.IsSequence()) {
    // The name alone: inputs are the tensors, from the first opset on.
    OnnxLine line;
    line.name = entry.text("onnx");
    line.since = 1;
    line.where = entry.where("onnx");
    std::vector<std::string> arguments;
    for (const Param& param : op.signature.params)
      if (param.is_tensor()) arguments.push_back(cat("input(", arguments.size(), ")"));
    line.text = cat(op.name_space == "tenon" ? op.name : op.qualified_name(), "(",
                    join(arguments, ", "), ")");
    op.onnx.push_back(std::move(line));
  } else {
    for (const YAML::Node& item : node)
      op.onnx.push_back(read_line(YamlEntry(item, op.file, "a line of `onnx`"), op));
  }
  std::vector<Spelling>& spellings = op.names["onnx"];
  for (const OnnxLine& line : op.onnx)
    if (std::none_of(spellings.begin(), spellings.end(),
                     [&](const Spelling& each) { return each.name == line.name; }))
      spellings.push_back({line.name, "", line.where});
}

}  // namespace tenon::codegen
