// SPDX-License-Identifier: Apache-2.0
#include "binding/call_parser.hpp"

#include <algorithm>
#include <optional>

#include "binding/source.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

struct KindRow {
  const char* name;
  const char* takes;
  // C++ that makes the parameter, or nothing if it cannot be made of this.
  std::optional<std::string> (*code)(const Source&, const Source& of);
};

std::optional<std::string> integer(const Source& source, const char* type) {
  if (source.is_integer) return cat(type, "{", source.word, "}");
  if (!source.is_kind({ParamKind::Int}) || source.param->optional) return std::nullopt;
  return cat("static_cast<", type, ">(tenon_arg_int(&", source.value, "))");
}

const KindRow kKinds[] = {
    {"Tensor", "a tensor parameter or a result",
     [](const Source& s, const Source&) -> std::optional<std::string> {
       if (!s.is_tensor()) return std::nullopt;
       return cat("call.tensor(", s.value, ")");
     }},
    {"Scalar", "a number, or a parameter of type Scalar, float, int or bool that is never none",
     [](const Source& s, const Source&) -> std::optional<std::string> {
       if (s.is_integer) return cat("call.scalar(int64_t{", s.word, "})");
       if (s.is_number) return cat("call.scalar(double{", s.word, "})");
       if (!s.is_kind({ParamKind::Scalar, ParamKind::Float, ParamKind::Int, ParamKind::Bool}) ||
           s.param->optional)
         return std::nullopt;
       return cat("call.scalar(", s.value, ")");
     }},
    {"int64", "an integer, or a parameter of type int that is never none",
     [](const Source& s, const Source&) { return integer(s, "int64_t"); }},
    {"int8", "an integer, or a parameter of type int that is never none",
     [](const Source& s, const Source&) { return integer(s, "int8_t"); }},
    {"int", "an integer, or a parameter of type int that is never none",
     [](const Source& s, const Source&) { return integer(s, "int"); }},
    {"bool", "true, false, or a parameter of type bool",
     [](const Source& s, const Source&) -> std::optional<std::string> {
       if (s.word == "true" || s.word == "false") return s.word;
       if (!s.is_kind({ParamKind::Bool})) return std::nullopt;
       return cat("tenon_arg_bool(&", s.value, ") != 0");
     }},
    {"double", "a number, or a parameter of type float that is never none",
     [](const Source& s, const Source&) -> std::optional<std::string> {
       if (s.is_integer || s.is_number) return cat("double{", s.word, "}");
       if (!s.is_kind({ParamKind::Float}) || s.param->optional) return std::nullopt;
       return cat("tenon_arg_float(&", s.value, ")");
     }},
    {"ints", "a parameter of type int[] that is never none",
     [](const Source& s, const Source&) -> std::optional<std::string> {
       if (!s.is_kind({ParamKind::Ints}) || s.param->optional) return std::nullopt;
       return cat("call.ints(", s.value, ")");
     }},
    {"axes", "`axis of x`, a parameter of type int[] and the tensor whose axes it names",
     [](const Source& s, const Source& of) -> std::optional<std::string> {
       if (!s.is_kind({ParamKind::Ints}) || !of.is_tensor()) return std::nullopt;
       return cat("call.axes(", s.value, ", ", of.value, ")");
     }},
    {"dtype",
     "a parameter of type dtype that is never none, or a tensor or result, whose dtype it is",
     [](const Source& s, const Source&) -> std::optional<std::string> {
       const bool is_dtype = s.is_kind({ParamKind::Dtype}) && !s.param->optional;
       if (!s.is_tensor() && !is_dtype) return std::nullopt;
       return cat("call.dtype(", s.value, ")");
     }},
};

// A parameter of a kind that the plugin declares: a method of Call that takes parameters and results as they
// are, numbers, and words in quotes.
std::string method_call(const std::vector<std::string>& words, const std::string& text,
                        const Location& where, const Operator& op, std::set<int>& used) {
  std::vector<std::string> values;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const Source source = source_of(word, op, used);
    if (!source.value.empty()) {
      values.push_back(source.value);
    } else if (source.is_integer) {
      values.push_back(cat("int64_t{", word, "}"));
    } else if (source.is_number) {
      values.push_back(cat("double{", word, "}"));
    } else if (word.size() > 2 && word.front() == '\'' && word.back() == '\'') {
      values.push_back(cat("\"", word.substr(1, word.size() - 2), "\""));
    } else {
      throw Error(where, cat("`call`: `", text, "`: ", op.name, " has no parameter or result `",
                             word, "`; text is written in single quotes"));
    }
  }
  return cat("call.", words[0], "(", join(values, ", "), ")");
}

std::string parse_parameter(const std::string& text, const Location& where, const Operator& op,
                            const std::vector<std::string>& methods, std::set<int>& used) {
  const std::vector<std::string> words = [&] {
    std::vector<std::string> list;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) list.push_back(word);
    return list;
  }();
  if (!words.empty() && std::count(methods.begin(), methods.end(), words[0]))
    return method_call(words, text, where, op, used);
  if (words.size() != 2 && !(words.size() == 4 && words[0] == "axes" && words[2] == "of"))
    throw Error(where, cat("`call`: expected parameters like `Tensor x` or `axes axis of x`, got `",
                           text, "`"));
  std::vector<std::string> known;
  for (const KindRow& row : kKinds) known.push_back(row.name);
  known.insert(known.end(), methods.begin(), methods.end());
  for (const KindRow& row : kKinds) {
    if (words[0] != row.name) continue;
    const Source source = source_of(words[1], op, used);
    const Source of = words.size() == 4 ? source_of(words[3], op, used) : Source{};
    const std::optional<std::string> code = row.code(source, of);
    if (!code)
      throw Error(where, cat("`call`: ", row.name, " is made of ", row.takes, "; got `", text,
                             "` for ", op.name, op.signature.canonical()));
    return *code;
  }
  throw Error(where, cat("`call`: unknown kind of parameter `", words[0], "`",
                         did_you_mean(words[0], known), "; known: ", join(known, " ")));
}

}  // namespace

void parse_call(std::string_view text, const Location& where,
                const std::vector<std::string>& methods, Binding& binding, std::set<int>& used) {
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close != text.size() - 1 || open == 0)
    throw Error(where, cat("`call`: expected `function(Kind name, ...)`, got `", text, "`"));
  binding.function = trimmed(text.substr(0, open));
  std::istringstream list(std::string(text.substr(open + 1, close - open - 1)));
  for (std::string part; std::getline(list, part, ',');)
    binding.parameters.push_back(
        parse_parameter(trimmed(part), where, *binding.op, methods, used));
  if (binding.parameters.empty())
    throw Error(where, cat("`call`: expected parameters, got `", text, "`"));
}

}  // namespace tenon::codegen
