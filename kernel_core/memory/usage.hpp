// SPDX-License-Identifier: Apache-2.0
// Counters of one device's allocations. Threads with a cache count for themselves and publish when
// they have drifted; the sums are exact when no call is under way, the peak within kDrift per
// thread and the large block that it holds back.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace tenon::core {

inline constexpr int64_t kDrift = 2 << 20;

struct UsageTotals {
  int64_t current = 0;  // bytes requested and not yet freed
  int64_t peak = 0;
  uint64_t allocations = 0;
  uint64_t frees = 0;
};

// Only its own thread writes it, with plain loads and stores; any thread may read it.
class ThreadUsage {
 public:
  // Whether it is time to publish.
  bool allocated(uint64_t bytes) {
    bump(allocations_);
    int64_t drift = drift_.load(std::memory_order_relaxed) + static_cast<int64_t>(bytes);
    drift_.store(drift, std::memory_order_relaxed);
    if (drift > peak_.load(std::memory_order_relaxed))
      peak_.store(drift, std::memory_order_relaxed);
    return drift > kDrift;
  }
  bool freed(uint64_t bytes) {
    int64_t drift = drift_.load(std::memory_order_relaxed) - static_cast<int64_t>(bytes);
    drift_.store(drift, std::memory_order_relaxed);
    bump(frees_);
    return drift < -kDrift;
  }

 private:
  friend class Usage;
  // Release: a thread that sees the block freed also sees every write to it before.
  static void bump(std::atomic<uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  std::atomic<int64_t> drift_{0};  // bytes allocated less bytes freed since the last publish
  std::atomic<int64_t> peak_{0};   // its maximum
  std::atomic<uint64_t> allocations_{0};
  std::atomic<uint64_t> frees_{0};
  ThreadUsage* next_ = nullptr;
};

class Usage {
 public:
  // For calls made without a thread's counters.
  void allocated(uint64_t bytes) {
    allocations_.fetch_add(1, std::memory_order_release);
    add(static_cast<int64_t>(bytes), static_cast<int64_t>(bytes));
  }
  void freed(uint64_t bytes) {
    add(-static_cast<int64_t>(bytes), 0);
    frees_.fetch_add(1, std::memory_order_release);
  }

  void publish(ThreadUsage& own) {
    add(own.drift_.load(std::memory_order_relaxed), own.peak_.load(std::memory_order_relaxed));
    own.drift_.store(0, std::memory_order_relaxed);
    own.peak_.store(0, std::memory_order_relaxed);
  }

  void join(ThreadUsage& thread);
  void leave(ThreadUsage& thread);  // with the mutex held
  template <class Visit>
  void for_each(Visit&& visit) {
    std::lock_guard lock(mutex_);
    for (ThreadUsage* thread = threads_; thread; thread = thread->next_) visit(*thread);
  }
  UsageTotals totals();
  void reset_peak();

  std::mutex& mutex() { return mutex_; }

 private:
  // `highest`: how far above the old value the bytes rose on the way.
  void add(int64_t bytes, int64_t highest) {
    int64_t top = current_.fetch_add(bytes, std::memory_order_relaxed) + highest;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (top > peak && !peak_.compare_exchange_weak(peak, top, std::memory_order_relaxed)) {
    }
  }

  std::atomic<int64_t> current_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<uint64_t> allocations_{0};
  std::atomic<uint64_t> frees_{0};
  std::mutex mutex_;
  ThreadUsage* threads_ = nullptr;
};

}  // namespace tenon::core
