// SPDX-License-Identifier: Apache-2.0
#include "binding/property.hpp"

#include <sstream>

#include "binding/source.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

bool is_tensor(const Operator& op, const std::string& name) {
  const int i = op.signature.find_param(name);
  return i >= 0 && op.signature.params[static_cast<size_t>(i)].is_tensor();
}

// The position of y in `y.shape`; -1: it is no tensor.
int tensor_of_shape(const Operator& op, const std::string& text) {
  constexpr std::string_view kEnd = ".shape";
  const size_t at = text.size() < kEnd.size() ? 0 : text.size() - kEnd.size();
  const std::string name = text.substr(0, at);
  return text.substr(at) == kEnd && is_tensor(op, name) ? op.signature.find_param(name) : -1;
}

}  // namespace

DtypeMask read_dtypes(const std::string& text, const Location& where, const std::string& key) {
  DtypeMask mask = 0;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, '|');) {
    const std::optional<DtypeMask> one = find_dtype_class(trimmed(name));
    if (!one)
      throw Error(where, cat("`", key, "`: unknown dtype `", trimmed(name), "`",
                             did_you_mean(trimmed(name), dtype_class_names())));
    mask |= *one;
  }
  return mask;
}

std::optional<std::string> comparison(const std::string& text, bool of_integers) {
  const size_t start = text.find_first_not_of("<>=");
  if (start == std::string::npos) return std::nullopt;
  const std::string sign = text.substr(0, start), number = trimmed(text.substr(start));
  const bool is_known = sign.empty() || sign == "<" || sign == "<=" || sign == ">" || sign == ">=";
  if (!is_known || !(of_integers ? is_integer(number) : is_number(number))) return std::nullopt;
  return cat(" ", sign.empty() ? "==" : sign, " ", number);
}

std::string read_property(const Location& where, const Operator& op, const std::string& name,
                          const std::string& value) {
  const size_t dot = name.find('.');
  const std::string owner = name.substr(0, dot), property = name.substr(dot + 1);
  const int i = op.signature.find_param(owner);
  const Param* param = i < 0 ? nullptr : &op.signature.params[static_cast<size_t>(i)];
  const std::string arg = cat("args[", i, "]");
  const std::optional<std::string> test = comparison(value, true);
  if (param && param->holds_tensors()) {
    const bool is_list = param->kind == ParamKind::Tensors;
    const std::string tensor =
        is_list ? cat("tenon_arg_tensors(&", arg, ")[0]") : cat("tenon_arg_tensor(&", arg, ")");
    const std::string absent =
        param->optional ? cat(arg, ".tag == TENON_VALUE_NONE || ") : std::string();
    std::string found;
    if (property == "shape" && !is_list)
      if (const int other = tensor_of_shape(op, value); other >= 0)
        return cat("same_shape(", arg, ", args[", other, "])");
    if ((property == "ndim" || property == "numel") && test)
      found = cat(absent, tensor, "->", property, *test);
    if (property == "dtype" && is_tensor(op, value))
      found = cat(absent, tensor, "->dtype == tenon_arg_tensor(&args[",
                  op.signature.find_param(value), "])->dtype");
    else if (property == "dtype" && is_list)
      found = cat("all_have(", arg, ", ", hex64(read_dtypes(value, where, "only")), "u)");
    else if (property == "dtype")
      found = cat(absent, "(uint64_t{", hex64(read_dtypes(value, where, "only")), "} >> ", tensor,
                  "->dtype & 1) != 0");
    if (!found.empty()) return absent.empty() ? found : cat("(", found, ")");
  }
  const bool is_list =
      param && (param->kind == ParamKind::Ints || param->kind == ParamKind::Tensors);
  if (is_list && property == "count" && test) return cat("tenon_arg_count(&", arg, ")", *test);
  throw Error(where, cat("`only`: expected `ndim`, `numel` or `dtype` of a tensor or `count` of a "
                         "list, with a number or dtypes, or `x.shape: y.shape`, got `",
                         name, ": ", value, "`; ", op.name, " is ", op.signature.canonical()));
}

}  // namespace tenon::codegen
