// SPDX-License-Identifier: Apache-2.0
// The processor's counter, which takes a third of the time that clock_gettime does.
#pragma once

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace tenon::profiler {

inline uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return monotonic_ns();
#endif
}

// From ticks to CLOCK_MONOTONIC, by two moments that were seen on both.
class ClockMap {
 public:
  struct Moment {
    uint64_t ticks, ns;
  };
  static Moment now() {
    // Of several readings the one in which the least time passed between the two clocks.
    Moment best{};
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < 5; ++i) {
      const uint64_t before = ticks(), ns = monotonic_ns(), after = ticks();
      if (after - before >= shortest) continue;
      shortest = after - before;
      best = {before + shortest / 2, ns};
    }
    return best;
  }

  ClockMap(Moment first, Moment last)
      : first_(first),
        ns_per_tick_(last.ticks > first.ticks ? static_cast<double>(last.ns - first.ns) /
                                                    static_cast<double>(last.ticks - first.ticks)
                                              : 1.0) {}

  uint64_t ns(uint64_t ticks) const {
    const auto since = static_cast<double>(static_cast<int64_t>(ticks - first_.ticks));
    return first_.ns + static_cast<uint64_t>(static_cast<int64_t>(since * ns_per_tick_));
  }

 private:
  Moment first_;
  double ns_per_tick_;
};

}  // namespace tenon::profiler
