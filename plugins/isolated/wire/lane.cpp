// SPDX-License-Identifier: Apache-2.0
#include "wire/lane.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::isolated {
namespace {

// Longer than a small kernel takes, and short enough to waste little on a busy machine.
constexpr uint64_t kSpinNs = 30'000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr,
                 0);
}

bool spin(const std::atomic<uint32_t>& word, uint32_t seen, uint64_t start) {
  do {
    for (int i = 0; i < 32; ++i) {
      if (word.load(std::memory_order_acquire) != seen) return true;
      pause();
    }
  } while (now_ns() - start < kSpinNs);
  return false;
}

}  // namespace

uint32_t lanes_that_spin() {
  static const auto lanes = [] {
    cpu_set_t processors;
    const bool known = sched_getaffinity(0, sizeof processors, &processors) == 0;
    return static_cast<uint32_t>(known ? CPU_COUNT(&processors) / 2 : 1);
  }();
  return lanes;
}

bool wait_for_change(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeps, uint32_t seen,
                     Patience patience, uint64_t timeout_ns) {
  if (word.load(std::memory_order_acquire) != seen) return true;
  const uint64_t start = now_ns();
  if (patience == Patience::kSpinFirst && spin(word, seen, start)) return true;
  // First the announcement, then the look: the other side changes the word before it looks for
  // sleepers.
  sleeps.store(1, std::memory_order_seq_cst);
  bool changed;
  while (!(changed = word.load(std::memory_order_seq_cst) != seen)) {
    if (timeout_ns == 0) {
      futex(word, FUTEX_WAIT, seen, nullptr);
      continue;
    }
    const uint64_t waited = now_ns() - start;
    if (waited >= timeout_ns) break;
    const uint64_t left = timeout_ns - waited;
    const timespec timeout = {static_cast<time_t>(left / 1'000'000'000u),
                              static_cast<long>(left % 1'000'000'000u)};
    futex(word, FUTEX_WAIT, seen, &timeout);
  }
  sleeps.store(0, std::memory_order_relaxed);
  return changed;
}

void change(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeps, uint32_t value) {
  word.store(value, std::memory_order_seq_cst);
  if (sleeps.load(std::memory_order_seq_cst)) futex(word, FUTEX_WAKE, INT32_MAX, nullptr);
}

void announce_end(Lane& lane) {
  lane.answered.store(kGone, std::memory_order_seq_cst);
  // Whatever the process left in program_sleeps.
  futex(lane.answered, FUTEX_WAKE, INT32_MAX, nullptr);
}

}  // namespace tenon::isolated
