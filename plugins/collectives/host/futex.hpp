// SPDX-License-Identifier: Apache-2.0
// A word in memory that processes share, on which one of them sleeps.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "control/time.hpp"

namespace tenon::collectives {

static_assert(std::atomic<uint32_t>::is_always_lock_free, "the words are shared between processes");

class Doorbell {
 public:
  uint32_t look() const { return rings_.load(std::memory_order_seq_cst); }
  // Until it rings after that look, or the deadline; may return early. It does not spin: with fewer processors than ranks,
  // who spins keeps the other from answering.
  void sleep(uint32_t looked, uint64_t deadline) {
    // First the announcement, then the look: who rings changes the word before it looks for sleepers.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (look() == looked) {
      const uint64_t left = time_left(deadline);
      const timespec time = {static_cast<time_t>(left / kSecond),
                             static_cast<long>(left % kSecond)};
      syscall(SYS_futex, reinterpret_cast<uint32_t*>(&rings_), FUTEX_WAIT, looked, &time, nullptr,
              0);
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
  void ring() {
    rings_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst))
      syscall(SYS_futex, reinterpret_cast<uint32_t*>(&rings_), FUTEX_WAKE, INT_MAX, nullptr,
              nullptr, 0);
  }

 private:
  std::atomic<uint32_t> rings_;
  std::atomic<uint32_t> sleepers_;
};

}  // namespace tenon::collectives
