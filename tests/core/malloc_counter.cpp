// SPDX-License-Identifier: Apache-2.0
#include "tests/core/malloc_counter.hpp"

#include <cstddef>

namespace {
constinit thread_local uint64_t count = 0;
}

namespace tenon::test {
uint64_t malloc_count() { return count; }
}  // namespace tenon::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_memalign(size_t align, size_t size);

void* malloc(size_t size) {
  ++count;
  return __libc_malloc(size);
}
void* aligned_alloc(size_t align, size_t size) {
  ++count;
  return __libc_memalign(align, size);
}
}
#endif
