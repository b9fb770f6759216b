// SPDX-License-Identifier: Apache-2.0
// Reading structs that the other side may know in an older, shorter or a newer, longer form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace tenon::core {

inline constexpr uint32_t kMaxStructBytes = 1 << 20;

// Is `size` one that a table of this kind may claim? `mandatory` is where its optional tail begins.
inline bool is_plausible_size(uint32_t size, size_t mandatory) {
  return size >= mandatory && size % 8 == 0 && size < kMaxStructBytes;
}

inline std::string describe_size(uint32_t size, size_t mandatory) {
  return "expected a multiple of 8 from " + std::to_string(mandatory) + " to " +
         std::to_string(kMaxStructBytes) + ", got " + std::to_string(size);
}

// Copy what both sides know; the rest of `into` is zero, which means absent.
template <class Table>
void copy_sized(Table& into, const void* from, uint32_t their_size) {
  static_assert(std::is_trivially_copyable_v<Table>);
  std::memset(static_cast<void*>(&into), 0, sizeof into);
  std::memcpy(static_cast<void*>(&into), from, std::min<size_t>(their_size, sizeof into));
}

}  // namespace tenon::core
