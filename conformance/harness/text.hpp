// SPDX-License-Identifier: Apache-2.0
// text("expected ", 3, " bytes"): a string from parts.
#pragma once

#include <sstream>
#include <string>

namespace tenon::kit {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

}  // namespace tenon::kit
