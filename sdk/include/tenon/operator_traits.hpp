// SPDX-License-Identifier: Apache-2.0
// What operators say of themselves (tenon_op_def.traits): lines of "key: value".
#pragma once

#include <tenon/abi.h>

#include <algorithm>
#include <string_view>

namespace tenon {

// visit(value) for every line with this key, "rows: ". Ends early where it returns true.
template <class Visit>
void for_each_trait(const tenon_op_def& def, std::string_view key, Visit&& visit) {
  std::string_view text = def.traits ? def.traits : "";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key) && visit(line.substr(key.size()))) return;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
}

// The value of the first line with this key, or "".
inline std::string_view trait(const tenon_op_def& def, std::string_view key) {
  std::string_view found;
  for_each_trait(def, key, [&](std::string_view value) { return found = value, true; });
  return found;
}

}  // namespace tenon
