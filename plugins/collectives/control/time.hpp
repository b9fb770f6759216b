// SPDX-License-Identifier: Apache-2.0
// Nanoseconds of CLOCK_MONOTONIC, and moments at which waiting ends.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace tenon::collectives {

inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kSecond = 1'000'000'000;
inline constexpr uint64_t kForever = ~uint64_t{0};

inline uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

// A moment in the future; a very long time does not wrap around.
inline uint64_t deadline_after(uint64_t timeout_ns) {
  const uint64_t now = now_ns();
  return timeout_ns > kForever - now ? kForever : now + timeout_ns;
}

inline uint64_t time_left(uint64_t deadline) {
  const uint64_t now = now_ns();
  return deadline > now ? deadline - now : 0;
}

// For poll(): what is left, rounded up, of `limit_ms` at most.
inline int milliseconds_left(uint64_t deadline, int limit_ms) {
  const uint64_t left =
      (std::min(time_left(deadline), kSecond * 1000) + kMillisecond - 1) / kMillisecond;
  return static_cast<int>(std::min<uint64_t>(left, static_cast<uint64_t>(limit_ms)));
}

// "0.2 s"
inline std::string seconds_text(uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s",
                static_cast<double>(ns) / static_cast<double>(kSecond));
  return text;
}

}  // namespace tenon::collectives
