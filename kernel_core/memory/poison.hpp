// SPDX-License-Identifier: Apache-2.0
// Marks bytes of cached host memory as inaccessible for AddressSanitizer; does nothing without it.
#pragma once

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tenon::core {

inline void poison([[maybe_unused]] void* data, [[maybe_unused]] uint64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(data, bytes);
#endif
}

inline void unpoison([[maybe_unused]] void* data, [[maybe_unused]] uint64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
}

}  // namespace tenon::core
