// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/usage.hpp"

namespace tenon::core {

void Usage::join(ThreadUsage& thread) {
  std::lock_guard lock(mutex_);
  thread.next_ = threads_;
  threads_ = &thread;
}

void Usage::leave(ThreadUsage& thread) {
  publish(thread);
  allocations_.fetch_add(thread.allocations_.load(std::memory_order_relaxed),
                         std::memory_order_release);
  frees_.fetch_add(thread.frees_.load(std::memory_order_relaxed), std::memory_order_release);
  ThreadUsage** link = &threads_;
  while (*link != &thread) link = &(*link)->next_;
  *link = thread.next_;
}

UsageTotals Usage::totals() {
  std::lock_guard lock(mutex_);
  // Frees first, so that no answer ever says that fewer blocks are alive than are.
  UsageTotals totals;
  totals.frees = frees_.load(std::memory_order_acquire);
  for (ThreadUsage* thread = threads_; thread; thread = thread->next_)
    totals.frees += thread->frees_.load(std::memory_order_acquire);
  totals.allocations = allocations_.load(std::memory_order_acquire);
  totals.current = current_.load(std::memory_order_relaxed);
  int64_t highest = totals.current;
  for (ThreadUsage* thread = threads_; thread; thread = thread->next_) {
    totals.allocations += thread->allocations_.load(std::memory_order_acquire);
    totals.current += thread->drift_.load(std::memory_order_relaxed);
    highest += thread->peak_.load(std::memory_order_relaxed);
  }
  totals.peak = std::max({peak_.load(std::memory_order_relaxed), highest, totals.current});
  return totals;
}

void Usage::reset_peak() {
  std::lock_guard lock(mutex_);
  int64_t current = current_.load(std::memory_order_relaxed);
  for (ThreadUsage* thread = threads_; thread; thread = thread->next_) {
    // A thread that is allocating just now may put its old peak back, which is at most kDrift off.
    int64_t drift = thread->drift_.load(std::memory_order_relaxed);
    thread->peak_.store(drift, std::memory_order_relaxed);
    current += drift;
  }
  peak_.store(current, std::memory_order_relaxed);
}

}  // namespace tenon::core
