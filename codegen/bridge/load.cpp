// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bridge/bridge.hpp"
#include "expression/parser.hpp"
#include "load/yaml_entry.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// Names and calls of one expression.
class BridgeChecker {
 public:
  BridgeChecker(const Package& package, const BridgeCall& call) : package_(package), call_(call) {}

  void add_step(const std::string& name) { steps_.push_back(name); }

  void check(const Node& node) const {
    for (const Node& child : node.children) check(child);
    if (node.kind == NodeKind::Name && !node.is_infinity_or_nan()) check_name(node);
    if (node.kind == NodeKind::Call) check_call(node);
    if (node.kind == NodeKind::Member) {
      static const std::vector<std::string> known = {"shape", "ndim", "dtype", "numel"};
      if (std::find(known.begin(), known.end(), node.text) == known.end())
        throw Error(node.where, cat("`.", node.text, "`: expected one of ", join(known, " "),
                                    did_you_mean(node.text, known)));
    }
  }

 private:
  void check_name(const Node& node) const {
    std::vector<std::string> known = call_.params;
    known.insert(known.end(), steps_.begin(), steps_.end());
    if (std::find(known.begin(), known.end(), node.text) != known.end()) return;
    if (schema::find_dtype(node.text)) return;
    throw Error(node.where, cat("`", node.text, "` is no parameter that the line names, which are ",
                                join(call_.params, " "), did_you_mean(node.text, known)));
  }

  void check_call(const Node& node) const {
    if (is_length(node)) return;
    const Operator* op = package_.find(node.text, "tenon");
    if (!op || !op->is_public())
      throw Error(node.where, cat("`", node.text, "` is no operator",
                                  did_you_mean(node.text, package_.operator_names())));
    const std::vector<Param>& params = op->signature.params;
    std::vector<bool> given(params.size());
    for (size_t i = 0; i < node.children.size(); ++i) {
      const std::string& keyword = node.keywords[i];
      const int index = keyword.empty() ? static_cast<int>(i) : op->signature.find_param(keyword);
      if (index < 0 || index >= static_cast<int>(params.size()) ||
          (keyword.empty() && params[static_cast<size_t>(index)].keyword_only))
        throw Error(node.where,
                    cat("`", node.text,
                        "`: ", keyword.empty() ? cat("argument ", i + 1) : cat("`", keyword, "`"),
                        " is none of ", op->schema()));
      given[static_cast<size_t>(index)] = true;
    }
    for (size_t i = 0; i < params.size(); ++i)
      if (!given[i] && !params[i].default_value && !params[i].optional)
        throw Error(node.where,
                    cat("`", node.text, "`: expected `", params[i].name, "`, see ", op->schema()));
  }

  const Package& package_;
  const BridgeCall& call_;
  std::vector<std::string> steps_;
};

void read_steps(const YamlEntry& entry, const YAML::Node& node, const Package& package,
                const BridgeCall& call, BridgeCase& result) {
  BridgeChecker checker(package, call);
  const auto lines = entry.scalars(node, "as");
  for (size_t i = 0; i < lines.size(); ++i) {
    Step step = parse_step(lines[i].first, lines[i].second, "as");
    if (step.name.empty() != (i + 1 == lines.size()))
      throw Error(lines[i].second,
                  cat("`as`: expected `name = expression` for all but the last line, got `",
                      lines[i].first, "`"));
    checker.check(step.expression);
    checker.add_step(step.name);
    result.steps.push_back(std::move(step));
  }
}

BridgeCase read_case(const YAML::Node& node, const std::string& path, const Package& package,
                     const BridgeCall& call) {
  BridgeCase result;
  if (node.IsScalar()) {  // the short form of {as: ...}
    YAML::Node map;
    map["as"] = node;
    const YamlEntry entry(map, path, "a case");
    result.where = {path, node.Mark().line + 1};
    Step step = parse_step(node.Scalar(), result.where, "as");
    BridgeChecker(package, call).check(step.expression);
    result.steps.push_back(std::move(step));
    return result;
  }
  const YamlEntry entry(node, path, "a case");
  entry.check_keys({"when", "as", "native", "refuse"});
  result.where = entry.where();
  if (entry.has("when")) {
    result.when = parse_expression(entry.text("when"), entry.where("when"), "when");
    BridgeChecker(package, call).check(*result.when);
  }
  const int kinds = entry.has("as") + entry.has("native") + entry.has("refuse");
  if (kinds != 1)
    throw Error(result.where, "expected one of `as`, `native` and `refuse` in a case");
  if (entry.has("as")) read_steps(entry, entry.find("as"), package, call, result);
  result.native = entry.text_or("native", "");
  result.refuse = entry.text_or("refuse", "");
  return result;
}

// "add.Tensor(self, other)"
BridgeCall read_name(const std::string& text, const Location& where,
                     const ForeignSignatures& signatures) {
  const size_t open = text.find('(');
  if (open == std::string::npos || text.back() != ')')
    throw Error(where, cat("expected `name(parameter, ...)`, got `", text, "`"));
  const std::string name = text.substr(0, open);
  const auto known = signatures.find(name);
  if (known == signatures.end()) {
    std::vector<std::string> names;
    for (const auto& item : signatures) names.push_back(item.first);
    throw Error(where,
                cat("`", name, "` is not in the list of signatures", did_you_mean(name, names)));
  }
  BridgeCall call{&known->second, {}, {}, where};
  std::string list = text.substr(open + 1, text.size() - open - 2);
  for (std::string param; !list.empty();) {
    const size_t comma = list.find(',');
    param = trimmed(list.substr(0, comma));
    list = comma == std::string::npos ? "" : list.substr(comma + 1);
    if (!call.signature->find(param)) {
      std::vector<std::string> names;
      for (const ForeignParam& each : call.signature->params) names.push_back(each.name);
      throw Error(where, cat("`", name, "` has no parameter `", param, "`, only ", join(names, " "),
                             did_you_mean(param, names)));
    }
    call.params.push_back(param);
  }
  for (const ForeignParam& each : call.signature->params)
    if (each.default_text.empty() &&
        std::find(call.params.begin(), call.params.end(), each.name) == call.params.end())
      throw Error(where, cat("`", name, "`: expected its parameter `", each.name,
                             "` among those that the line names, as it has no default"));
  return call;
}

}  // namespace

void load_bridge(const std::string& path, const Package& package,
                 const ForeignSignatures& signatures, Bridge& bridge,
                 std::vector<std::string>& errors) {
  try {
    const YamlEntry file(YAML::LoadFile(path), path, "a file of calls");
    file.check_keys({"library", "calls"});
    const std::string library = file.text("library");
    if (!bridge.library.empty() && bridge.library != library)
      throw Error(file.where("library"), cat("files of one run are of one library: expected `",
                                             bridge.library, "`, got `", library, "`"));
    bridge.library = library;
    for (const auto& item : file.require("calls")) {
      try {
        const Location where = file.location(item.first);
        BridgeCall call = read_name(item.first.Scalar(), where, signatures);
        for (const BridgeCall& other : bridge.calls)
          if (other.signature == call.signature)
            throw Error(where, cat("`", call.signature->name, "` is already told at ",
                                   other.where.origin()));
        if (item.second.IsSequence()) {
          for (const YAML::Node& node : item.second)
            call.cases.push_back(read_case(node, path, package, call));
        } else {
          call.cases.push_back(read_case(item.second, path, package, call));
        }
        bridge.calls.push_back(std::move(call));
      } catch (const Error& error) {
        errors.push_back(error.what());
      }
    }
  } catch (const YAML::BadFile&) {
    errors.push_back(cat(path, ":1: cannot read this file"));
  } catch (const YAML::Exception& error) {
    errors.push_back(cat(path, ":", error.mark.line + 1, ": not valid YAML: ", error.msg));
  } catch (const std::exception& error) {
    errors.push_back(error.what());
  }
}

}  // namespace tenon::codegen
