// SPDX-License-Identifier: Apache-2.0
#include "control/text.hpp"

#include <cstdint>

namespace tenon::collectives {
namespace {

// Bytes of the letter that the text begins with; 0: it begins with none.
size_t letter_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < count) return 0;
  for (size_t i = 1; i < count; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer forms of short letters, halves of pairs, and what lies behind the last letter.
  const uint8_t second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
    return 0;
  return count;
}

}  // namespace

std::string readable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t count = letter_bytes(text);
    result += count ? text.substr(0, count) : "?";
    text.remove_prefix(count ? count : 1);
  }
  return result;
}

}  // namespace tenon::collectives
