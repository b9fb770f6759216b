// SPDX-License-Identifier: Apache-2.0
// Text that other ranks say, or that is cut to the room that there is. Python reads UTF-8 and nothing else.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace tenon::collectives {

// The text, with '?' in place of every byte that is not part of UTF-8.
std::string readable(std::string_view text);

// Cut to the room that there is, in front of a letter, with a 0 behind it.
template <size_t kSize>
void copy_text(char (&to)[kSize], std::string_view text) {
  size_t count = std::min(text.size(), kSize - 1);
  while (count > 0 && count < text.size() && (text[count] & 0xc0) == 0x80) --count;
  text.copy(to, count);
  to[count] = '\0';
}

}  // namespace tenon::collectives
