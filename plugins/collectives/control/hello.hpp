// SPDX-License-Identifier: Apache-2.0
// The first words on a connection between two ranks, and the frames that follow on one for control.
#pragma once

#include <string.h>

#include <cstdint>
#include <string>

#include "control/record.hpp"

namespace tenon::collectives {

inline constexpr size_t kMachineBytes = 128;
inline constexpr char kHelloMagic[8] = {'T', 'N', 'R', 'A', 'N', 'K', '0', '1'};

enum HelloPurpose : uint32_t { kControl, kData };

struct Hello {
  char magic[8];
  char token[32];  // random letters that only ranks of this meeting know
  uint32_t purpose;
  int32_t from;
  char machine[kMachineBytes];
  char group[64];
};

template <size_t kSize>
std::string text_of(const char (&text)[kSize]) {
  return std::string(text, strnlen(text, kSize));
}

inline Hello make_hello(const std::string& token, uint32_t purpose, int32_t from,
                        const std::string& machine, const std::string& group) {
  Hello hello = {};
  memcpy(hello.magic, kHelloMagic, sizeof hello.magic);
  memcpy(hello.token, token.data(), std::min(token.size(), sizeof hello.token));
  hello.purpose = purpose;
  hello.from = from;
  copy_text(hello.machine, machine);
  copy_text(hello.group, group);
  return hello;
}

inline bool is_valid(const Hello& hello, const std::string& token, int32_t size) {
  return memcmp(hello.magic, kHelloMagic, sizeof hello.magic) == 0 &&
         token.size() == sizeof hello.token &&
         memcmp(hello.token, token.data(), token.size()) == 0 && hello.purpose <= kData &&
         hello.from >= 0 && hello.from < size;
}

enum FrameKind : uint32_t { kHeartbeat, kFailure, kGoodbye };
struct FrameHead {
  uint32_t kind;
  uint32_t bytes;
};
inline constexpr uint32_t kMaxFrameBytes = 16 << 10;

}  // namespace tenon::collectives
