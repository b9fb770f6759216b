// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <string_view>

namespace tenon::autograd {

const char* short_name(const char* name) {
  constexpr std::string_view kOwn = "tenon::";
  return std::string_view(name).starts_with(kOwn) ? name + kOwn.size() : name;
}

}  // namespace tenon::autograd
