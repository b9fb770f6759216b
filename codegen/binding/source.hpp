// SPDX-License-Identifier: Apache-2.0
// What a parameter of a vendor's function is made of: a parameter or a result of the operator, or a constant.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "model/operator.hpp"

namespace tenon::codegen {

// "-1", "20"; "0.5" is a number only.
bool is_integer(std::string_view text);
bool is_number(std::string_view text);

struct Source {
  std::string word;
  const Param* param = nullptr;
  std::string value;  // C++: "args[0]", "outs[0]"; empty for a constant
  bool is_integer = false, is_number = false;

  bool is_kind(std::initializer_list<ParamKind> kinds) const;
  bool is_tensor() const;  // a result, or a parameter
};

// Adds the position of the operator's parameter `word` to `used`.
Source source_of(const std::string& word, const Operator& op, std::set<int>& used);

}  // namespace tenon::codegen
