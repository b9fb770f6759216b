// SPDX-License-Identifier: Apache-2.0
// How long an algorithm takes besides its arithmetic, so that a test knows which one is the fastest.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

namespace simulated {

// SIMULATED_ALGORITHM_US: the times of algorithms 0, 1, ... of every library, separated by colons.
inline uint64_t algorithm_microseconds(uint64_t algorithm) {
  const char* text = std::getenv("SIMULATED_ALGORITHM_US");
  std::istringstream fields(text ? text : "");
  std::string field;
  for (uint64_t i = 0; std::getline(fields, field, ':'); ++i)
    if (i == algorithm) return std::strtoull(field.c_str(), nullptr, 10);
  return 0;
}

inline void take_time(uint64_t microseconds) {
  if (microseconds) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

}  // namespace simulated
