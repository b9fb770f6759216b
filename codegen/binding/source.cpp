// SPDX-License-Identifier: Apache-2.0
#include "binding/source.hpp"

#include <charconv>

#include "support/text.hpp"

namespace tenon::codegen {

bool is_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_number(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return error == std::errc() && end == text.data() + text.size() &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

bool Source::is_kind(std::initializer_list<ParamKind> kinds) const {
  for (ParamKind kind : kinds)
    if (param && param->kind == kind) return true;
  return false;
}

bool Source::is_tensor() const { return !value.empty() && (!param || param->is_tensor()); }

Source source_of(const std::string& word, const Operator& op, std::set<int>& used) {
  Source source;
  source.word = word;
  if (const int i = op.signature.find_param(word); i >= 0) {
    source.param = &op.signature.params[static_cast<size_t>(i)];
    source.value = cat("args[", i, "]");
    used.insert(i);
  } else if (const int result = op.signature.find_result(word); result >= 0) {
    source.value = cat("outs[", result, "]");
  }
  source.is_integer = is_integer(word);
  source.is_number = is_number(word);
  return source;
}

}  // namespace tenon::codegen
