// SPDX-License-Identifier: Apache-2.0
// TENON_CPU_TRACE=1 writes one line to stderr for each GEMM, convolution and attention: the
// operator and the algorithm that was chosen. Tests check the choice by these lines.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tenon::cpu {

inline bool is_traced() {
  static const bool wanted = [] {
    const char* value = std::getenv("TENON_CPU_TRACE");
    return value && std::strcmp(value, "1") == 0;
  }();
  return wanted;
}

inline void trace(const char* op, const char* algorithm, const char* detail = "") {
  if (is_traced()) [[unlikely]]
    std::fprintf(stderr, "[tenon cpu] %s: %s%s%s\n", op, algorithm, *detail ? ", " : "", detail);
}

}  // namespace tenon::cpu
