// SPDX-License-Identifier: Apache-2.0
#include "binding/prototype.hpp"

#include <algorithm>
#include <optional>

#include "binding/c_type.hpp"
#include "binding/mangle.hpp"
#include "binding/source.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The commas of `const std::vector<a, b>& x, T y` that separate parameters.
std::vector<std::string> split_parameters(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

// Types of integers, with the range that generated code checks.
bool is_unsigned_type(const std::string& cpp) {
  return cpp == "size_t" || cpp == "uint64_t" || cpp == "uint32_t" || cpp == "uint16_t" ||
         cpp == "uint8_t";
}
bool is_integer_type(const std::string& cpp) {
  return cpp == "int64_t" || cpp == "int" || cpp == "int32_t" || cpp == "int16_t" ||
         cpp == "int8_t" || is_unsigned_type(cpp);
}

class PrototypeParser {
 public:
  PrototypeParser(const Location& where, const Language& language, int dtype, Binding& binding,
                  std::set<int>& used)
      : where_(where), language_(language), dtype_(dtype), binding_(binding), used_(used) {}

  void run(std::string_view text) {
    const size_t open = text.find('('), close = text.rfind(')');
    if (open == std::string_view::npos || close != text.size() - 1 || open == 0)
      throw Error(where_, cat("`call`: expected `function<T>(const T* x, ...)`, got `", text, "`"));
    function_.scope = language_.scope;
    names_["T"] = language_.types.at(dtype_);
    read_function(text.substr(0, open));
    for (const std::string& part : split_parameters(text.substr(open + 1, close - open - 1)))
      read_parameter(part);
    if (!language_.scope.empty()) binding_.symbol = mangled(function_, language_.global_types);
    binding_.suffix = cat("_", dtypes()[static_cast<size_t>(dtype_)].name);
  }

 private:
  // `conv2d<TX = T, TGEMM = float>`, `cblas_?gemm`
  void read_function(std::string_view text) {
    const size_t open = text.find('<');
    function_.name = trimmed(text.substr(0, open));
    if (const size_t letter = function_.name.find('?'); letter != std::string::npos) {
      const auto found = language_.letters.find(dtype_);
      if (found == language_.letters.end())
        throw Error(where_, cat("`call`: `letters` has none for ", dtype_name()));
      function_.name.replace(letter, 1, found->second);
    }
    if (open == std::string_view::npos) {
      binding_.function = function_.name;
      return;
    }
    if (language_.scope.empty() || text.back() != '>')
      throw Error(where_, cat("`call`: expected a template of C++ in the file's `scope`, got `",
                              text, "`"));
    for (const std::string& part :
         split_parameters(text.substr(open + 1, text.size() - open - 2))) {
      const size_t equals = part.find('=');
      const std::string parameter = trimmed(part.substr(0, equals));
      std::string value =
          equals == std::string::npos ? parameter : trimmed(part.substr(equals + 1));
      if (value == "T") value = names_["T"];
      names_[parameter] = value;
      function_.template_args.emplace_back(parameter, value);
    }
    binding_.function =
        cat(function_.name, "<",
            join(function_.template_args, ", ", [](const auto& one) { return one.second; }), ">");
  }

  void read_parameter(const std::string& text) {
    std::string_view rest = text;
    const CType type = read_type(rest, where_);
    const std::optional<std::string> code = code_of(type, words_of(rest));
    if (!code)
      throw Error(where_, cat("`call`: `", text, "` cannot be made for ", binding_.op->name,
                              binding_.op->signature.canonical(),
                              "; docs/bindings.md lists what a parameter of this type is made of"));
    function_.parameters.push_back(type);
    binding_.parameters.push_back(*code);
  }

  std::optional<std::string> code_of(const CType& type, const std::vector<std::string>& words) {
    const std::string cpp = spelled(type, names_);
    if (words.empty())
      return cpp == "Context*" ? std::optional<std::string>("call.context()") : std::nullopt;
    if (words.size() == 1) return code_of_word(type, cpp, words[0]);
    if (words.size() == 5 && words[0] == "shape" && words[1] == "of" && words[3] == "like") {
      const Source of = source(words[2]), like = source(words[4]);
      return cpp == "const std::vector<int64_t>&" && of.is_tensor() && like.is_tensor()
                 ? std::optional(cat("call.shape(", of.value, ", ", like.value, ")"))
                 : std::nullopt;
    }
    if (words.size() == 3 && words[1] == "from" && type.is_pointer()) {
      const Source out = source(words[0]), from = source(words[2]);
      if (out.param || !out.is_tensor() || !from.is_tensor()) return std::nullopt;
      const std::string pointee = spelled(type.inner(), names_);
      check_dtype(from, pointee);
      return cat("call.copied<", pointee, ">(", out.value, ", ", from.value, ")");
    }
    const bool is_dim = words.size() == 4 && words[0] == "dim" && words[2] == "of";
    if (!is_dim && (words.size() != 3 || words[1] != "of")) return std::nullopt;
    const Source of = source(words.back());
    if (cpp == "const std::vector<std::vector<int64_t>>&")
      return words[0] == "shapes" && of.is_kind({ParamKind::Tensors})
                 ? std::optional(cat("call.shapes(", of.value, ")"))
                 : std::nullopt;
    if (cpp == "const std::vector<int64_t>&" && is_integer(words[0]) &&
        is_given(of, {ParamKind::Ints}))
      return cat("call.ints(", of.value, ", ", words[0], ")");
    if (!of.is_tensor()) return std::nullopt;
    if (cpp == "const std::vector<int64_t>&") {
      if (words[0] == "shape") return cat("call.shape(", of.value, ")");
      for (const char* kind : {"window", "column"})
        if (words[0] == kind) return cat("call.", kind, "(", of.value, ")");
      const Source axis = source(words[0]);
      return axis.is_kind({ParamKind::Ints})
                 ? std::optional(cat("call.axes(", axis.value, ", ", of.value, ")"))
                 : std::nullopt;
    }
    if (!is_integer_type(cpp)) return std::nullopt;
    if (is_dim)
      return is_integer(words[1])
                 ? std::optional(size(cpp, cat("call.dim(", of.value, ", ", words[1], ")")))
                 : std::nullopt;
    if (words[0] == "matrix") return size(cpp, cat("call.matrix(", of.value, ")"));
    if (words[0] == "numel") return size(cpp, cat("call.numel(", of.value, ")"));
    const Source axis = source(words[0]);
    if (!is_given(axis, {ParamKind::Int})) return std::nullopt;
    return size(cpp, cat("call.axis(", axis.value, ", ", of.value, ")"));
  }

  std::optional<std::string> code_of_word(const CType& type, const std::string& cpp,
                                          const std::string& word) {
    if (word == "null" && type.is_pointer()) return cat("static_cast<", cpp, ">(nullptr)");
    const Source made = source(word);
    if (type.is_pointer() && made.is_tensor()) {
      const std::string pointee = spelled(type.inner(), names_);
      check_dtype(made, pointee);
      return cat("call.data<", pointee, ">(", made.value, ")");
    }
    if (type.kind == CType::Kind::Reference) {
      // `[1]`: a list with one integer.
      if (cpp == "const std::vector<int64_t>&" && word.size() > 2 && word.front() == '[' &&
          word.back() == ']' && is_integer(word.substr(1, word.size() - 2)))
        return cat("call.list({", word.substr(1, word.size() - 2), "})");
      if (cpp == "const std::vector<int64_t>&" && is_given(made, {ParamKind::Ints}))
        return cat("call.ints(", made.value, ")");
      const CType& vector =
          type.inner().kind == CType::Kind::Const ? type.inner().inner() : type.inner();
      if (vector.is_name("std::vector") && vector.args[0].is_pointer() &&
          made.is_kind({ParamKind::Tensors}))
        return cat("call.pointers<", spelled(vector.args[0].inner(), names_), ">(", made.value,
                   ")");
      return std::nullopt;
    }
    if (cpp == "bool") {
      if (word == "true" || word == "false") return word;
      if (is_given(made, {ParamKind::Scalar})) return cat("call.number(", made.value, ") != 0");
      if (!made.is_kind({ParamKind::Bool})) return std::nullopt;
      return cat("tenon_arg_bool(&", made.value, ") != 0");
    }
    if (is_integer_type(cpp)) {
      if (made.is_integer && is_unsigned_type(cpp) && word[0] == '-')
        throw Error(where_, cat("`call`: expected a ", cpp, ", which has no sign, got ", word));
      if (made.is_integer) return cat(cpp, "{", word, "}");
      if (!is_given(made, {ParamKind::Int, ParamKind::Scalar})) return std::nullopt;
      return size(cpp, cat("call.integer(", made.value, ")"));
    }
    if (cpp == "float" || cpp == "double") {
      if (made.is_integer || made.is_number) return cat(cpp, "(", word, ")");
      if (!is_given(made, {ParamKind::Float, ParamKind::Scalar, ParamKind::Int}))
        return std::nullopt;
      return cat("static_cast<", cpp, ">(call.number(", made.value, "))");
    }
    return std::nullopt;
  }

  // A parameter of one of the kinds, which is never none, or not where `only` says `given`.
  bool is_given(const Source& made, std::initializer_list<ParamKind> kinds) const {
    if (!made.is_kind(kinds)) return false;
    const std::string given = cat(made.value, ".tag != TENON_VALUE_NONE");
    const std::vector<std::string>& conditions = binding_.conditions;
    return !made.param->optional ||
           std::find(conditions.begin(), conditions.end(), given) != conditions.end();
  }

  Source source(const std::string& word) { return source_of(word, *binding_.op, used_); }
  const char* dtype_name() const { return dtypes()[static_cast<size_t>(dtype_)].name; }

  // A number that the type does not hold is a failure of the call.
  static std::string size(const std::string& cpp, const std::string& code) {
    return cpp == "int64_t" ? code : cat("call.narrow<", cpp, ">(", code, ")");
  }

  // A tensor of another dtype than the prototype's is not served. The first tensor's dtype chose the kernel.
  void check_dtype(const Source& tensor, std::string pointee) {
    if (!tensor.param) return;
    if (pointee.rfind("const ", 0) == 0) pointee = pointee.substr(6);
    if (tensor.value == "args[0]" && pointee == names_["T"]) return;
    for (const auto& [dtype, name] : language_.types)
      if (name == pointee) {
        const std::string condition =
            cat("has_dtype(", tensor.value, ", ", dtypes()[static_cast<size_t>(dtype)].macro, ")");
        for (const std::string& known : binding_.conditions)
          if (known == condition) return;
        binding_.conditions.push_back(condition);
        return;
      }
    throw Error(where_, cat("`call`: `types` has no dtype for ", pointee));
  }

  const Location& where_;
  const Language& language_;
  const int dtype_;
  Binding& binding_;
  std::set<int>& used_;
  Prototype function_;
  TypeNames names_;
};

}  // namespace

void parse_returned(const std::string& text, const Location& where, const Language& language,
                    int dtype, Binding& binding) {
  if (!language.scope.empty())
    throw Error(where, "`returns`: functions of C++ in a `scope` return a status, as an int");
  std::string_view rest = text;
  const CType type = read_type(rest, where);
  const std::string& value = language.types.at(dtype);
  const std::string returned = spelled(type, {{"T", value}});
  const std::string name = trimmed(rest);
  // Without its type, a function that returns a double would be called as one that returns a float.
  if (name.empty() || (returned != value && returned != "float" && returned != "double" &&
                       !is_integer_type(returned)))
    throw Error(where,
                cat("`returns`: expected the type that the function returns (T, float, double or "
                    "an integer's) and a result of ",
                    binding.op->name, ", such as `T out`; got `", text, "`"));
  const int result = binding.op->signature.find_result(name);
  if (result < 0)
    throw Error(where, cat("`returns`: ", binding.op->name, " has no result `", name, "`"));
  binding.run = returned == value
                    ? cat("run_into<", value, ">(outs[", result, "], ")
                    : cat("run_into_as<", value, ", ", returned, ">(outs[", result, "], ");
}

void parse_prototype(std::string_view text, const Location& where, const Language& language,
                     int dtype, Binding& binding, std::set<int>& used) {
  PrototypeParser(where, language, dtype, binding, used).run(text);
}

}  // namespace tenon::codegen
