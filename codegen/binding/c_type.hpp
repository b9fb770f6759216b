// SPDX-License-Identifier: Apache-2.0
// Types of C and C++ as the prototypes of a vendor's functions spell them: `const TX*`,
// `const std::vector<int64_t>&`.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/location.hpp"

namespace tenon::codegen {

struct CType {
  enum class Kind { Name, Const, Pointer, Reference };
  Kind kind = Kind::Name;
  std::string name;         // of Name: "float", "TX", "std::vector"
  std::vector<CType> args;  // of Name: those of a template; otherwise the one type that this one is made of

  const CType& inner() const { return args.front(); }
  bool is_pointer() const { return kind == Kind::Pointer; }
  bool is_name(std::string_view text) const { return kind == Kind::Name && name == text; }
};

// Reads the type at the start of `text`, and cuts it off.
CType read_type(std::string_view& text, const Location& where);

using TypeNames = std::map<std::string, std::string>;
// As C++ spells it, with other names in place of some: "const float*".
std::string spelled(const CType& type, const TypeNames& names);

}  // namespace tenon::codegen
