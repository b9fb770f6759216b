// SPDX-License-Identifier: Apache-2.0
#include "model/signature.hpp"

#include <array>
#include <cmath>

#include "expression/lexer.hpp"
#include "expression/parser.hpp"
#include "model/dtype.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

struct KindRow {
  ParamKind kind;
  const char* name;
  const char* macro;
};
constexpr std::array<KindRow, 11> kKinds = {{
    {ParamKind::Tensor, "Tensor", "TENON_PARAM_TENSOR"},
    {ParamKind::Tensors, "Tensor[]", "TENON_PARAM_TENSORS"},
    {ParamKind::Int, "int", "TENON_PARAM_INT"},
    {ParamKind::Float, "float", "TENON_PARAM_FLOAT"},
    {ParamKind::Bool, "bool", "TENON_PARAM_BOOL"},
    {ParamKind::Scalar, "Scalar", "TENON_PARAM_SCALAR"},
    {ParamKind::String, "str", "TENON_PARAM_STRING"},
    {ParamKind::Dtype, "dtype", "TENON_PARAM_DTYPE"},
    {ParamKind::Device, "device", "TENON_PARAM_DEVICE"},
    {ParamKind::Ints, "int[]", "TENON_PARAM_INTS"},
    {ParamKind::Floats, "float[]", "TENON_PARAM_FLOATS"},
}};

const KindRow& row(ParamKind kind) { return kKinds[static_cast<size_t>(kind) - 1]; }

ParamKind parse_kind(TokenStream& tokens) {
  if (tokens.peek().kind != TokenKind::Name) tokens.fail_expected("a parameter: `type name`");
  std::string name = tokens.next().text;
  if (tokens.accept("[")) {
    tokens.expect("]");
    name += "[]";
  }
  std::vector<std::string> known;
  for (const KindRow& entry : kKinds) {
    if (name == entry.name) return entry.kind;
    known.push_back(entry.name);
  }
  tokens.fail(
      cat("expected a type (", join(known, " "), "), got `", name, "`", did_you_mean(name, known)));
}

// Numbers as written, so that `0.5` stays `0.5` in the canonical text.
std::string literal_text(const Node& node) {
  if (node.kind == NodeKind::Unary) return node.text + literal_text(node.children[0]);
  if (node.kind == NodeKind::List) return cat("[", join(node.children, ", ", literal_text), "]");
  return text_of(node);
}

std::optional<double> literal_number(const Node& node) {
  if (node.kind == NodeKind::Integer || node.kind == NodeKind::Float) return node.number;
  if (node.is_infinity_or_nan()) return node.text == "inf" ? HUGE_VAL : std::nan("");
  if (node.kind == NodeKind::Unary && node.text == "-")
    if (auto number = literal_number(node.children[0])) return -*number;
  return std::nullopt;
}

std::optional<int64_t> literal_integer(const Node& node) {
  if (node.kind == NodeKind::Integer) return node.integer;
  if (node.kind == NodeKind::Unary && node.text == "-")
    if (auto integer = literal_integer(node.children[0])) return -*integer;
  return std::nullopt;
}

template <class Element, class Function>
std::optional<DefaultValue> literal_list(const Node& node, Function convert) {
  if (node.kind != NodeKind::List) return std::nullopt;
  std::vector<Element> elements;
  for (const Node& child : node.children) {
    auto element = convert(child);
    if (!element) return std::nullopt;
    elements.push_back(*element);
  }
  return DefaultValue(std::move(elements));
}

// The default as a value of the parameter's kind; nothing if it is not one.
std::optional<DefaultValue> convert_default(const Node& node, const Param& param) {
  if (node.kind == NodeKind::None)
    return param.optional ? std::optional<DefaultValue>(NoneValue{}) : std::nullopt;
  switch (param.kind) {
    case ParamKind::Bool:
      if (node.kind == NodeKind::Boolean) return DefaultValue(node.boolean);
      return std::nullopt;
    case ParamKind::Int:
      if (auto integer = literal_integer(node)) return DefaultValue(*integer);
      return std::nullopt;
    case ParamKind::Float:
      if (auto number = literal_number(node)) return DefaultValue(*number);
      return std::nullopt;
    case ParamKind::Tensor:  // a number stands for a weak scalar
    case ParamKind::Scalar:
      if (node.kind == NodeKind::Boolean) return DefaultValue(node.boolean);
      if (auto integer = literal_integer(node)) return DefaultValue(*integer);
      if (auto number = literal_number(node)) return DefaultValue(*number);
      return std::nullopt;
    case ParamKind::String:
      if (node.kind == NodeKind::String) return DefaultValue(node.text);
      return std::nullopt;
    case ParamKind::Dtype:
      if (node.kind == NodeKind::Name)
        if (auto id = find_dtype(node.text)) return DefaultValue(DtypeValue{*id});
      return std::nullopt;
    case ParamKind::Ints:
      return literal_list<int64_t>(node, literal_integer);
    case ParamKind::Floats:
      return literal_list<double>(node, literal_number);
    case ParamKind::Tensors:
    case ParamKind::Device:
      return std::nullopt;
  }
  return std::nullopt;
}

void check_name(TokenStream& tokens, const std::string& name) {
  if (is_reserved_word(name))
    tokens.fail(
        cat("`", name, "` is reserved (C++, Python or generated code); choose another name"));
}

Param parse_param(TokenStream& tokens) {
  Param param;
  param.kind = parse_kind(tokens);
  param.optional = tokens.accept("?");
  param.name = tokens.expect_name("a parameter name");
  check_name(tokens, param.name);
  if (tokens.accept("=")) {
    Node node = parse_operand(tokens);
    param.default_text = literal_text(node);
    param.default_value = convert_default(node, param);
    if (!param.default_value)
      tokens.fail(cat("default of `", param.name, "`: expected a value of type ",
                      yaml_name(param.kind), param.optional ? "?" : "", ", got `",
                      param.default_text, "`"));
  }
  return param;
}

std::vector<Param> parse_params(TokenStream& tokens) {
  std::vector<Param> params;
  bool keyword_only = false;
  tokens.expect("(");
  while (!tokens.accept(")")) {
    if (tokens.accept("*")) {
      if (keyword_only) tokens.fail("expected one `*`, got two");
      keyword_only = true;
    } else {
      Param param = parse_param(tokens);
      param.keyword_only = keyword_only;
      for (const Param& other : params)
        if (other.name == param.name)
          tokens.fail(cat("two parameters are called `", param.name, "`"));
      if (!keyword_only && !param.default_value && !params.empty() && params.back().default_value)
        tokens.fail(cat("`", param.name, "` needs a default, because `", params.back().name,
                        "` before it has one"));
      params.push_back(std::move(param));
    }
    if (!tokens.at(")")) tokens.expect(",");
  }
  if (keyword_only && (params.empty() || !params.back().keyword_only))
    tokens.fail("expected a parameter after `*`");
  return params;
}

Result parse_result(TokenStream& tokens, bool named) {
  Result result;
  ParamKind kind = parse_kind(tokens);
  if (kind != ParamKind::Tensor && kind != ParamKind::Tensors)
    tokens.fail(cat("results are Tensor or Tensor[], got ", yaml_name(kind)));
  result.list = kind == ParamKind::Tensors;
  result.name = named ? tokens.expect_name("a result name") : "out";
  check_name(tokens, result.name);
  return result;
}

std::vector<Result> parse_results(TokenStream& tokens) {
  tokens.expect("->");
  if (!tokens.accept("(")) return {parse_result(tokens, false)};
  std::vector<Result> results;
  while (!tokens.accept(")")) {
    results.push_back(parse_result(tokens, true));
    if (!tokens.at(")")) tokens.expect(",");
  }
  if (results.empty()) tokens.fail("expected at least one result");
  for (const Result& result : results)
    if (result.list && results.size() > 1) tokens.fail("a Tensor[] result must be the only one");
  return results;
}

}  // namespace

const char* yaml_name(ParamKind kind) { return row(kind).name; }
const char* macro_name(ParamKind kind) { return row(kind).macro; }

int Signature::find_param(std::string_view name) const {
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].name == name) return static_cast<int>(i);
  return -1;
}

int Signature::find_result(std::string_view name) const {
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].name == name) return static_cast<int>(i);
  return -1;
}

std::string Signature::canonical() const {
  std::string text = "(";
  bool keyword_only = false;
  for (size_t i = 0; i < params.size(); ++i) {
    const Param& param = params[i];
    if (i > 0) text += ", ";
    if (param.keyword_only && !keyword_only) text += "*, ";
    keyword_only = param.keyword_only;
    text += cat(yaml_name(param.kind), param.optional ? "?" : "", " ", param.name);
    if (param.default_value) text += "=" + param.default_text;
  }
  text += ") -> ";
  auto type = [](const Result& result) { return result.list ? "Tensor[]" : "Tensor"; };
  if (results.size() == 1 && results[0].name == "out") return text + type(results[0]);
  return cat(text, "(",
             join(results, ", ", [&](const Result& r) { return cat(type(r), " ", r.name); }), ")");
}

Signature parse_signature(std::string_view text, const Location& where) {
  TokenStream tokens(text, where, "sig");
  Signature signature;
  signature.params = parse_params(tokens);
  signature.results = parse_results(tokens);
  tokens.expect_end();
  for (const Result& result : signature.results)
    if (signature.find_param(result.name) >= 0)
      throw Error(where, cat("sig: `", result.name, "` is a parameter and a result; rename one"));
  return signature;
}

}  // namespace tenon::codegen
