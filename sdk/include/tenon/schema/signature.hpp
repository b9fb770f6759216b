// SPDX-License-Identifier: Apache-2.0
// Signatures of operators, `(Tensor x, Tensor? bias=none, *, int axis=-1) -> Tensor`: the model,
// the parser and the canonical text. Part of tenon/schema.hpp.
#pragma once

#include <tenon/schema/tokens.hpp>
#include <tenon/schema/words.hpp>

#include <charconv>
#include <limits>
#include <variant>

namespace tenon::schema {

// Values equal TENON_PARAM_*.
enum class ParamKind {
  Tensor = TENON_PARAM_TENSOR,
  Tensors = TENON_PARAM_TENSORS,
  Int = TENON_PARAM_INT,
  Float = TENON_PARAM_FLOAT,
  Bool = TENON_PARAM_BOOL,
  Scalar = TENON_PARAM_SCALAR,
  String = TENON_PARAM_STRING,
  Dtype = TENON_PARAM_DTYPE,
  Device = TENON_PARAM_DEVICE,
  Ints = TENON_PARAM_INTS,
  Floats = TENON_PARAM_FLOATS
};

// Type names as they are written, in the order of ParamKind.
inline constexpr std::array<const char*, 11> kTypeNames = {"Tensor", "Tensor[]", "int",    "float",
                                                           "bool",   "Scalar",   "str",    "dtype",
                                                           "device", "int[]",    "float[]"};
inline const char* type_name(ParamKind kind) { return kTypeNames[static_cast<size_t>(kind) - 1]; }

struct NoneValue {};
struct DtypeValue {
  int id;
};
// A default. The alternative agrees with the parameter's kind (Float parameters hold double; a
// Tensor's is a number that stands for a weak scalar).
using DefaultValue = std::variant<NoneValue, bool, int64_t, double, std::string, DtypeValue,
                                  std::vector<int64_t>, std::vector<double>>;

struct Param {
  std::string name;
  ParamKind kind = ParamKind::Tensor;
  bool optional = false;
  bool keyword_only = false;
  std::optional<DefaultValue> default_value;
  std::string default_text;  // as in the canonical text

  bool is_tensor() const { return kind == ParamKind::Tensor; }
  bool holds_tensors() const { return kind == ParamKind::Tensor || kind == ParamKind::Tensors; }
};

struct Result {
  std::string name;
  bool list = false;  // Tensor[]
};

struct Signature {
  std::vector<Param> params;
  std::vector<Result> results;

  // Position, or -1.
  int find_param(std::string_view name) const { return find(params, name); }
  int find_result(std::string_view name) const { return find(results, name); }
  bool list_result() const { return results.size() == 1 && results[0].list; }

  // "(Tensor x, *, int axis=-1) -> Tensor": what is hashed, after "namespace::op".
  std::string canonical() const {
    std::string text = "(";
    bool keyword_only = false;
    for (size_t i = 0; i < params.size(); ++i) {
      const Param& param = params[i];
      if (i > 0) text += ", ";
      if (param.keyword_only && !keyword_only) text += "*, ";
      keyword_only = param.keyword_only;
      text += std::string(type_name(param.kind)) + (param.optional ? "? " : " ") + param.name;
      if (param.default_value) text += "=" + param.default_text;
    }
    text += ") -> ";
    auto type = [](const Result& result) { return result.list ? "Tensor[]" : "Tensor"; };
    if (results.size() == 1 && results[0].name == "out") return text + type(results[0]);
    for (size_t i = 0; i < results.size(); ++i)
      text.append(i == 0 ? "(" : ", ").append(type(results[i])).append(" ").append(results[i].name);
    return text + ")";
  }

 private:
  template <class List>
  static int find(const List& list, std::string_view name) {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].name == name) return static_cast<int>(i);
    return -1;
  }
};

namespace detail {

// A default as it is written.
struct Literal {
  enum class Kind { None, Boolean, Integer, Float, String, Name, List };
  Kind kind = Kind::None;
  std::string text;  // canonical; of a String: without its quotes
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
  std::vector<Literal> elements;

  bool is_number() const { return kind == Kind::Integer || kind == Kind::Float; }
};

// Numbers keep their text, so that `0.5` stays `0.5`.
inline Literal parse_number(TokenStream& tokens, bool negative) {
  std::string text = negative ? "-" : "";
  text += tokens.peek().text;
  Literal literal;
  literal.text = text;
  TokenKind kind = tokens.peek().kind;
  if (kind == TokenKind::Name && (tokens.peek().text == "inf" || tokens.peek().text == "nan")) {
    tokens.next();
    literal.kind = Literal::Kind::Float;
    using Limits = std::numeric_limits<double>;
    double value = text.ends_with("inf") ? Limits::infinity() : Limits::quiet_NaN();
    literal.number = negative ? -value : value;
    return literal;
  }
  if (kind != TokenKind::Integer && kind != TokenKind::Float) tokens.fail_expected("a number");
  tokens.next();
  const char* end = text.data() + text.size();
  auto parse = [&](auto& value, const char* where) {
    if (std::from_chars(text.data(), end, value).ec != std::errc())
      tokens.fail("`" + text + "` does not fit into " + where);
  };
  if (kind == TokenKind::Integer) {
    literal.kind = Literal::Kind::Integer;
    parse(literal.integer, "64 bits");
    literal.number = static_cast<double>(literal.integer);
  } else {
    literal.kind = Literal::Kind::Float;
    parse(literal.number, "a float64");
  }
  return literal;
}

inline Literal parse_literal(TokenStream& tokens, bool inside_list = false) {
  Literal literal;
  if (!inside_list && tokens.accept("[")) {
    literal.kind = Literal::Kind::List;
    literal.text = "[";
    while (!tokens.accept("]")) {
      literal.elements.push_back(parse_literal(tokens, true));
      if (literal.elements.size() > 1) literal.text += ", ";
      literal.text += literal.elements.back().text;
      if (!tokens.at("]")) tokens.expect(",");
    }
    literal.text += "]";
    return literal;
  }
  if (tokens.accept("-")) return parse_number(tokens, true);
  const Token& token = tokens.peek();
  literal.text = token.text;
  switch (token.kind) {
    case TokenKind::Integer:
    case TokenKind::Float:
      return parse_number(tokens, false);
    case TokenKind::String:
      literal.kind = Literal::Kind::String;
      break;
    case TokenKind::Name:
      if (token.text == "inf" || token.text == "nan") return parse_number(tokens, false);
      literal.kind = token.text == "none"                            ? Literal::Kind::None
                     : token.text == "true" || token.text == "false" ? Literal::Kind::Boolean
                                                                     : Literal::Kind::Name;
      literal.boolean = token.text == "true";
      break;
    default:
      tokens.fail_expected("a default value");
  }
  tokens.next();
  return literal;
}

inline std::string canonical_text(const Literal& literal) {
  return literal.kind == Literal::Kind::String ? "'" + literal.text + "'" : literal.text;
}

template <class Element, class Function>
std::optional<DefaultValue> literal_list(const Literal& literal, Function convert) {
  if (literal.kind != Literal::Kind::List) return std::nullopt;
  std::vector<Element> elements;
  for (const Literal& child : literal.elements) {
    std::optional<Element> element = convert(child);
    if (!element) return std::nullopt;
    elements.push_back(*element);
  }
  return DefaultValue(std::move(elements));
}

// The default as a value of the parameter's kind; nothing if it is not one.
inline std::optional<DefaultValue> convert_default(const Literal& literal, const Param& param) {
  using Kind = Literal::Kind;
  auto integer = [](const Literal& from) {
    return from.kind == Kind::Integer ? std::optional(from.integer) : std::nullopt;
  };
  auto number = [](const Literal& from) {
    return from.is_number() ? std::optional(from.number) : std::nullopt;
  };
  if (literal.kind == Kind::None)
    return param.optional ? std::optional<DefaultValue>(NoneValue{}) : std::nullopt;
  switch (param.kind) {
    case ParamKind::Bool:
      if (literal.kind == Kind::Boolean) return DefaultValue(literal.boolean);
      return std::nullopt;
    case ParamKind::Int:
      if (auto value = integer(literal)) return DefaultValue(*value);
      return std::nullopt;
    case ParamKind::Float:
      if (auto value = number(literal)) return DefaultValue(*value);
      return std::nullopt;
    case ParamKind::Tensor:
    case ParamKind::Scalar:
      if (literal.kind == Kind::Boolean) return DefaultValue(literal.boolean);
      if (auto value = integer(literal)) return DefaultValue(*value);
      if (auto value = number(literal)) return DefaultValue(*value);
      return std::nullopt;
    case ParamKind::String:
      if (literal.kind == Kind::String) return DefaultValue(literal.text);
      return std::nullopt;
    case ParamKind::Dtype:
      if (literal.kind == Kind::Name)
        if (auto id = find_dtype(literal.text)) return DefaultValue(DtypeValue{*id});
      return std::nullopt;
    case ParamKind::Ints:
      return literal_list<int64_t>(literal, integer);
    case ParamKind::Floats:
      return literal_list<double>(literal, number);
    case ParamKind::Tensors:
    case ParamKind::Device:
      return std::nullopt;
  }
  return std::nullopt;
}

inline ParamKind parse_kind(TokenStream& tokens) {
  if (tokens.peek().kind != TokenKind::Name) tokens.fail_expected("a parameter: `type name`");
  std::string name = tokens.next().text;
  if (tokens.accept("[")) {
    tokens.expect("]");
    name += "[]";
  }
  std::string known;
  for (size_t i = 0; i < kTypeNames.size(); ++i) {
    if (name == kTypeNames[i]) return static_cast<ParamKind>(i + 1);
    if (i > 0) known += " ";
    known += kTypeNames[i];
  }
  tokens.fail("expected a type (" + known + "), got `" + name + "`" +
              did_you_mean(name, {kTypeNames.begin(), kTypeNames.end()}));
}

inline std::string parse_name(TokenStream& tokens, std::string_view what_for) {
  std::string name = tokens.expect_name(what_for);
  if (is_reserved_word(name))
    tokens.fail("`" + name + "` is reserved (C++, Python or generated code); choose another name");
  return name;
}

inline Param parse_param(TokenStream& tokens) {
  Param param;
  param.kind = parse_kind(tokens);
  param.optional = tokens.accept("?");
  param.name = parse_name(tokens, "a parameter name");
  if (tokens.accept("=")) {
    Literal literal = parse_literal(tokens);
    param.default_text = canonical_text(literal);
    param.default_value = convert_default(literal, param);
    if (!param.default_value)
      tokens.fail("default of `" + param.name + "`: expected a value of type " +
                  type_name(param.kind) + (param.optional ? "?" : "") + ", got `" +
                  param.default_text + "`");
  }
  return param;
}

inline std::vector<Param> parse_params(TokenStream& tokens) {
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
        if (other.name == param.name) tokens.fail("two parameters are called `" + param.name + "`");
      if (!keyword_only && !param.default_value && !params.empty() && params.back().default_value)
        tokens.fail("`" + param.name + "` needs a default, because `" + params.back().name +
                    "` before it has one");
      params.push_back(std::move(param));
    }
    if (!tokens.at(")")) tokens.expect(",");
  }
  if (keyword_only && (params.empty() || !params.back().keyword_only))
    tokens.fail("expected a parameter after `*`");
  return params;
}

inline Result parse_result(TokenStream& tokens, bool named) {
  Result result;
  ParamKind kind = parse_kind(tokens);
  if (kind != ParamKind::Tensor && kind != ParamKind::Tensors)
    tokens.fail(std::string("results are Tensor or Tensor[], got ") + type_name(kind));
  result.list = kind == ParamKind::Tensors;
  result.name = named ? parse_name(tokens, "a result name") : "out";
  return result;
}

inline std::vector<Result> parse_results(TokenStream& tokens) {
  tokens.expect("->");
  if (!tokens.accept("(")) return {parse_result(tokens, false)};
  std::vector<Result> results;
  while (!tokens.accept(")")) {
    results.push_back(parse_result(tokens, true));
    if (!tokens.at(")")) tokens.expect(",");
  }
  if (results.empty()) tokens.fail("expected at least one result");
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].list && results.size() > 1)
      tokens.fail("a Tensor[] result must be the only one");
    for (size_t k = 0; k < i; ++k)
      if (results[k].name == results[i].name)
        tokens.fail("two results are called `" + results[i].name + "`");
  }
  return results;
}

}  // namespace detail

// The stream's text from here to its end.
inline Signature parse_signature(TokenStream& tokens) {
  Signature signature;
  signature.params = detail::parse_params(tokens);
  signature.results = detail::parse_results(tokens);
  tokens.expect_end();
  for (const Result& result : signature.results)
    if (signature.find_param(result.name) >= 0)
      tokens.fail("`" + result.name + "` is a parameter and a result; rename one");
  return signature;
}

}  // namespace tenon::schema
