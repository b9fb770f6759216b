// SPDX-License-Identifier: Apache-2.0
#include "gemm/amx.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tenon::cpu {
namespace {

bool allowed = false;

#if defined(__x86_64__) && defined(__linux__)
// Linux saves AMX tile registers only for processes that have requested them.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#else
bool request_tiles() { return false; }
#endif

}  // namespace

bool processor_has_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
  constexpr unsigned kBfloat16 = 1u << 22, kAmx = 1u << 24, kBytes = 1u << 25;
  constexpr unsigned needed = kBfloat16 | kAmx | kBytes;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & needed) != needed) return false;
  unsigned low, high;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned saved = 1u << 17 | 1u << 18;  // the configuration and the tiles
  return (low & saved) == saved;
#else
  return false;
#endif
}

void allow_tiles() { allowed = true; }

bool has_tiles() {
  static const bool granted = allowed && processor_has_tiles() && request_tiles();
  return granted;
}

}  // namespace tenon::cpu
