// SPDX-License-Identifier: Apache-2.0
#include "binding/source.hpp"

#include "binding/call_parser.hpp"
#include "support/text.hpp"

namespace tenon::codegen {

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
