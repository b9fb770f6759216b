// SPDX-License-Identifier: Apache-2.0
#include "load/rules.hpp"

#include <algorithm>

#include "expression/lexer.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// The parameter of this name and kind, or an error that says what is missing.
const Param& require_param(const Operator& op, const std::string& name, ParamKind kind,
                           const Location& where, const std::string& key) {
  int index = op.signature.find_param(name);
  std::vector<std::string> names;
  for (const Param& param : op.signature.params) names.push_back(param.name);
  if (index < 0)
    throw Error(where, cat(key, ": `", name, "` is no parameter of `", op.name, "`",
                           did_you_mean(name, names)));
  const Param& param = op.signature.params[index];
  bool fits = param.kind == kind ||
              (kind == ParamKind::Tensor && param.kind == ParamKind::Tensors) ||
              (kind == ParamKind::Ints && param.kind == ParamKind::Int);
  if (!fits)
    throw Error(where, cat(key, ": `", name, "`: expected a ", yaml_name(kind), " parameter, got ",
                           yaml_name(param.kind)));
  return param;
}

OutDtype parse_out(const std::string& text, const Location& where, const Operator& op) {
  static const std::vector<std::string> known = {"same",       "bool",  "int64",        "real",
                                                 "accumulate", "float", "param(dtype)", "native"};
  if (text == "same") return {OutDtype::Same, ""};
  if (text == "bool") return {OutDtype::Bool, ""};
  if (text == "int64") return {OutDtype::Int64, ""};
  if (text == "real") return {OutDtype::Real, ""};
  if (text == "accumulate") return {OutDtype::Accumulate, ""};
  if (text == "float") return {OutDtype::Float, ""};
  if (text == "native") return {OutDtype::Native, ""};
  if (text.rfind("param(", 0) == 0 && text.back() == ')') {
    std::string name = trimmed(text.substr(6, text.size() - 7));
    require_param(op, name, ParamKind::Dtype, where, "dtypes.out");
    return {OutDtype::Param, name};
  }
  throw Error(where, cat("dtypes.out: expected one of ", join(known, " "), ", got `", text, "`",
                         did_you_mean(text, known)));
}

Compute parse_compute(const std::string& text, const Location& where) {
  static const std::vector<std::string> known = {"first", "promote", "promote_float", "output"};
  for (size_t i = 0; i < known.size(); ++i)
    if (text == known[i]) return static_cast<Compute>(i);
  throw Error(where, cat("dtypes.compute: expected one of ", join(known, " "), ", got `", text, "`",
                         did_you_mean(text, known)));
}

// "reduce(x, axis, keepdim)" to the word and its arguments.
struct RuleCall {
  std::string word;
  std::vector<std::string> arguments;
};
RuleCall parse_rule_call(const std::string& text, const Location& where) {
  TokenStream tokens(text, where, "shape");
  std::string word = tokens.expect_name("a shape rule");
  std::vector<std::string> arguments;
  if (tokens.accept("(")) {
    while (!tokens.accept(")")) {
      arguments.push_back(tokens.expect_name("a parameter name"));
      if (!tokens.at(")")) tokens.expect(",");
    }
  }
  tokens.expect_end();
  return {word, arguments};
}

void check_reduce(const Operator& op, ShapeRule& rule, const Location& where) {
  if (rule.params.empty() || rule.params.size() > 3)
    throw Error(where, "shape: expected reduce(x, axis, keepdim)");
  require_param(op, rule.params[0], ParamKind::Tensor, where, "shape");
  if (rule.params.size() > 1) require_param(op, rule.params[1], ParamKind::Ints, where, "shape");
  if (rule.params.size() < 3) return;
  if (rule.params[2] == "true" || rule.params[2] == "false") {
    rule.keepdim = rule.params[2] == "true";
    rule.params.pop_back();
  } else {
    require_param(op, rule.params[2], ParamKind::Bool, where, "shape");
  }
}

}  // namespace

DtypeMask parse_dtype_class(const std::string& text, const Location& where,
                            const std::string& key) {
  DtypeMask mask = 0;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '|');) {
    part = trimmed(part);
    auto found = find_dtype_class(part);
    if (!found)
      throw Error(where, cat(key, ": unknown dtype class `", part, "`",
                             did_you_mean(part, dtype_class_names()),
                             "; classes: bool integer signed unsigned floating complex real "
                             "numeric all storage any"));
    mask |= *found;
  }
  if (mask == 0) throw Error(where, cat(key, ": expected a dtype class, got nothing"));
  return mask;
}

DtypeRules read_dtype_rules(const YamlEntry& entry, const Operator& op) {
  DtypeRules rules;
  if (op.is_elementwise()) rules.compute = Compute::Promote;
  std::vector<std::string> promoted;
  bool promoted_given = false;
  if (YAML::Node node = entry.find("dtypes")) {
    YamlEntry map(node, op.file, "dtypes");
    std::vector<std::string> known = {"compute", "allow", "out", "promote", "interior"};
    const auto parameters = static_cast<std::ptrdiff_t>(known.size());
    for (const Param& param : op.signature.params)
      if (param.holds_tensors()) known.push_back(param.name);
    map.check_keys(known);
    if (map.has("compute"))
      rules.compute = parse_compute(map.text("compute"), map.where("compute"));
    if (map.has("allow"))
      rules.allow = parse_dtype_class(map.text("allow"), map.where("allow"), "dtypes.allow");
    rules.outs_given = map.has("out");
    if (rules.outs_given)
      for (const auto& [text, where] : map.scalars(map.find("out"), "dtypes.out"))
        rules.outs.push_back(parse_out(text, where, op));
    if (map.has("interior")) {
      if (map.text("interior") != "float32")
        throw Error(map.where("interior"),
                    cat("dtypes.interior: expected float32, got `", map.text("interior"), "`"));
      rules.float32_interior = true;
    }
    if (map.has("promote")) {
      promoted_given = true;
      for (const auto& [name, where] : map.scalars(map.find("promote"), "dtypes.promote")) {
        require_param(op, name, ParamKind::Tensor, where, "dtypes.promote");
        promoted.push_back(name);
      }
    }
    for (const auto& [key, value] : map.items()) {
      const auto rules_end = known.begin() + parameters;
      if (std::find(known.begin(), rules_end, key) != rules_end) continue;
      rules.checked[key] =
          parse_dtype_class(map.scalar(value, key), map.location(value), "dtypes." + key);
    }
    size_t results = op.signature.results.size();
    if (!rules.outs.empty() && rules.outs.size() != results && rules.outs.size() != 1)
      throw Error(map.where("out"), cat("dtypes.out: expected one rule per result (", results,
                                        "), got ", rules.outs.size()));
  }
  OutDtype first = rules.outs.empty() ? OutDtype{} : rules.outs[0];
  rules.outs.resize(op.signature.results.size(), first);
  bool promotes = rules.compute == Compute::Promote || rules.compute == Compute::PromoteFloat;
  if (promoted_given && !promotes)
    throw Error(entry.where("dtypes"),
                "dtypes.promote: needs `compute: promote` or `promote_float`");
  if (promotes && !promoted_given)
    for (const Param& param : op.signature.params)
      if (param.holds_tensors() && !rules.checked.count(param.name)) promoted.push_back(param.name);
  rules.promoted = std::move(promoted);
  return rules;
}

std::optional<ShapeRule> read_shape_rule(const YamlEntry& entry, const Operator& op) {
  Location where = entry.where("shape");
  if (!entry.has("shape")) {
    if (op.is_composite()) return std::nullopt;
    if (op.has_tag("data_dependent")) return ShapeRule{ShapeRule::DataDependent, {}, false};
    if (!op.is_elementwise())
      throw Error(op.where, cat("`", op.name,
                                "`: expected the key `shape`; only elementwise and "
                                "composite operators have a default"));
    ShapeRule rule{ShapeRule::Broadcast, {}, false};
    for (const Param& param : op.signature.params)
      if (param.is_tensor()) rule.params.push_back(param.name);
    return rule;
  }
  const RuleCall call = parse_rule_call(entry.text("shape"), where);
  const std::string& word = call.word;
  const std::vector<std::string>& arguments = call.arguments;
  ShapeRule rule{ShapeRule::Native, arguments, false};
  auto expect_count = [&](size_t count, const char* form) {
    if (arguments.size() != count) throw Error(where, cat("shape: expected ", form));
  };
  if (word == "broadcast") {
    rule.kind = ShapeRule::Broadcast;
    if (arguments.empty()) throw Error(where, "shape: expected broadcast(x, ...)");
    for (const std::string& name : arguments)
      require_param(op, name, ParamKind::Tensor, where, "shape");
  } else if (word == "same") {
    rule.kind = ShapeRule::Same;
    expect_count(1, "same(x)");
    require_param(op, arguments[0], ParamKind::Tensor, where, "shape");
  } else if (word == "reduce") {
    rule.kind = ShapeRule::Reduce;
    check_reduce(op, rule, where);
  } else if (word == "of") {
    rule.kind = ShapeRule::Of;
    expect_count(1, "of(shape), an int[] parameter");
    require_param(op, arguments[0], ParamKind::Ints, where, "shape");
  } else if (word == "native" || word == "data_dependent") {
    rule.kind = word == "native" ? ShapeRule::Native : ShapeRule::DataDependent;
    expect_count(0, word.c_str());
  } else {
    static const std::vector<std::string> known = {"broadcast", "same",   "reduce",
                                                   "of",        "native", "data_dependent"};
    throw Error(where, cat("shape: unknown rule `", word, "`", did_you_mean(word, known),
                           "; rules: ", join(known, " ")));
  }
  return rule;
}

}  // namespace tenon::codegen
