// SPDX-License-Identifier: Apache-2.0
// What a rank tells another before the data of a call. Ranks that differ would otherwise take each other's bytes for
// what they expect.
#pragma once

#include <string.h>

#include <cstdint>
#include <string>

#include "control/record.hpp"

namespace tenon::collectives {

struct CallHeader {
  uint32_t magic;
  int32_t kind;
  uint64_t
      count;  // of elements; where ranks differ in it, of those from the sender to the receiver
  int32_t dtype;
  int32_t reduce;
  int32_t root;
  uint32_t reserved;
  char site[80];  // for messages: ranks may be at different lines
};
inline constexpr uint32_t kCallMagic = 0x4c4c4354;  // TCLL

inline bool is_same_call(const CallHeader& a, const CallHeader& b) {
  return a.magic == b.magic && a.kind == b.kind && a.count == b.count && a.dtype == b.dtype &&
         a.reduce == b.reduce && a.root == b.root;
}

inline std::string call_text(const CallHeader& header) {
  tenon_group_record record = {};
  record.kind = header.magic == kCallMagic ? header.kind : -1;
  record.count = header.count;
  record.dtype = header.dtype;
  record.reduce = header.reduce;
  record.root = header.root;
  copy_text(record.site, std::string_view(header.site, strnlen(header.site, sizeof header.site)));
  make_readable(record);
  return call_text(record);
}

}  // namespace tenon::collectives
