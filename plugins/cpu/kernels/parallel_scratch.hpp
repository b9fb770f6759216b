// SPDX-License-Identifier: Apache-2.0
// A parallel loop in which each worker slot has scratch memory of its own. At most one thread runs
// in a slot at a time.
#pragma once

#include <tenon/parallel.hpp>

#include <atomic>

namespace tenon::cpu {

// The number of worker slots that n items of `work` units each are worth (tenon/parallel.hpp).
inline int64_t workers_for(int64_t n, int64_t work) {
  const bool serial = n <= 1 || n <= kSerialWork / std::max<int64_t>(work, 1);
  return serial ? 1 : std::min<int64_t>(n, host->thread_count());
}

// Divides items [0, n) into one contiguous part per worker slot. A worker first runs its own part,
// which its caches hold where the same call is repeated, and then steals items from the parts of
// others.
class WorkQueue {
 public:
  WorkQueue(int64_t n, int64_t threads) : n_(n), parts_(std::min(threads, kMaxParts)) {}

  // Calls f(i) for each item that no worker has claimed yet, beginning with part `own`.
  template <class F>
  void take(int64_t own, F&& f) {
    for (int64_t p = 0; p < parts_; ++p) {
      const int64_t part = (own + p) % parts_;
      const int64_t begin = n_ * part / parts_, count = n_ * (part + 1) / parts_ - begin;
      for (int64_t i; (i = taken_[part].fetch_add(1, std::memory_order_relaxed)) < count;) {
        f(begin + i);
      }
    }
  }

 private:
  static constexpr int64_t kMaxParts = 64;  // further threads share one
  int64_t n_, parts_;
  std::atomic<int64_t> taken_[kMaxParts] = {};
};

// Calls f(i, memory) for i in [0, n), in any order; each call costs `work` units. `memory` is the
// part of `pieces` that belongs to the worker slot, `stride` bytes from the next; no other call
// uses it at the same time.
template <class F>
inline void parallel_for_in_slots(void* scratch, int64_t stride, int64_t n, int64_t work, F&& f) {
  const int64_t threads = workers_for(n, work);
  if (threads == 1) {
    for (int64_t i = 0; i < n; ++i) f(i, scratch);
    return;
  }
  WorkQueue items(n, threads);
  const auto some = [&](int64_t first, int64_t last) {
    for (int64_t slot = first; slot < last; ++slot) {
      char* own = static_cast<char*>(scratch) + slot * stride;
      items.take(slot, [&](int64_t i) { f(i, own); });
    }
  };
  host->parallel_for(
      0, threads, 1,
      [](void* body, int64_t begin, int64_t end) {
        (*static_cast<decltype(some)*>(body))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&some)));
}

// Allocates the scratch memory as well: `bytes` for each worker slot, aligned to a cache line.
template <class F>
inline tenon_status parallel_for_with_scratch(tenon_ctx* ctx, int64_t n, int64_t work,
                                              int64_t bytes, tenon_err* err, F&& f) {
  const int64_t stride = (bytes + 63) & ~int64_t{63};
  void* memory = nullptr;
  if (bytes > 0) {
    const auto total = static_cast<uint64_t>(stride * workers_for(n, work));
    if (const tenon_status status = host->scratch(ctx, total, &memory, err); status != TENON_OK) {
      return status;
    }
  }
  parallel_for_in_slots(memory, stride, n, work, f);
  return TENON_OK;
}

}  // namespace tenon::cpu
