// SPDX-License-Identifier: Apache-2.0
// A loop on the pool whose threads each have memory of their own for the length of the call.
#pragma once

#include <tenon/parallel.hpp>

#include <atomic>

namespace tenon::cpu {

// Threads that are worth their while for n items of `work` units (parallel.hpp).
inline int64_t threads_for(int64_t n, int64_t work) {
  const bool serial = n <= 1 || n <= kSerialWork / std::max<int64_t>(work, 1);
  return serial ? 1 : std::min<int64_t>(n, host->thread_count());
}

// f(i, memory) for i in [0, n), each costing `work` units, in any order. `memory` is
// one of the thread_count() pieces at `pieces`, `stride` bytes apart, that no other f uses at the
// same time.
template <class F>
inline void parallel_in_memory(void* pieces, int64_t stride, int64_t n, int64_t work, F&& f) {
  const int64_t threads = threads_for(n, work);
  if (threads == 1) {
    for (int64_t i = 0; i < n; ++i) f(i, pieces);
    return;
  }
  // One range for each thread; which items it does is settled as they go.
  std::atomic<int64_t> next = 0;
  const auto some = [&](int64_t first, int64_t last) {
    for (int64_t slot = first; slot < last; ++slot) {
      char* own = static_cast<char*>(pieces) + slot * stride;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) f(i, own);
    }
  };
  host->parallel_for(
      0, threads, 1,
      [](void* body, int64_t begin, int64_t end) {
        (*static_cast<decltype(some)*>(body))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&some)));
}

// The same with `bytes` of scratch for each thread, aligned to a cache line.
template <class F>
inline tenon_status parallel_with_memory(tenon_ctx* ctx, int64_t n, int64_t work, int64_t bytes,
                                         tenon_err* err, F&& f) {
  const int64_t stride = (bytes + 63) & ~int64_t{63};
  void* memory = nullptr;
  if (bytes > 0) {
    const auto total = static_cast<uint64_t>(stride * threads_for(n, work));
    if (const tenon_status status = host->scratch(ctx, total, &memory, err); status != TENON_OK) {
      return status;
    }
  }
  parallel_in_memory(memory, stride, n, work, f);
  return TENON_OK;
}

}  // namespace tenon::cpu
