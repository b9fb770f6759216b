// SPDX-License-Identifier: Apache-2.0
// Names of C++ functions in a library's symbol table, by the Itanium C++ ABI (section 5.1, "External Names"),
// which GCC and Clang follow on Linux. A mangled name spells the types of all parameters: a library whose function has
// other parameters has no such symbol, and the operator is off instead of called wrongly.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binding/c_type.hpp"

namespace tenon::codegen {

struct Prototype {
  std::string scope;  // "baidu::xpu::api"; empty for a function of C
  std::string name;
  // Parameters of the template with what they are: {"TX", "float"}, {"MODE", "0"}.
  std::vector<std::pair<std::string, std::string>> template_args;
  std::vector<CType> parameters;
};

// "_ZN5baidu3xpu3api3absIfEEiPNS1_7ContextEPKT_PS5_l" of `int abs<T=float>(Context*, const T*, T*, int64_t)`.
// Functions return int. Names of types are those of C, class templates of std, those in `global`, and
// otherwise classes in the scope of the function.
std::string mangled(const Prototype& function, const std::vector<std::string>& global);

}  // namespace tenon::codegen
