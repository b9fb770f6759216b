// SPDX-License-Identifier: Apache-2.0
// What a call was, for messages and for the list of the last ones.
#pragma once

#include <tenon/services/collectives.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "control/text.hpp"

namespace tenon::collectives {

// "all_reduce(float32[8], sum) at train.py:88"; `record` may come from elsewhere and be wrong.
std::string call_text(const tenon_group_record& record);
// Its texts as UTF-8; it may come from elsewhere.
void make_readable(tenon_group_record& record);
// "call 512 of dp"
std::string number_text(const tenon_group_record& record);

// The last calls of a process in all groups of one meeting.
class RecordRing {
 public:
  static constexpr size_t kCapacity = 2048;
  // A number for `finish`.
  uint64_t begin(const tenon_group_record& record);
  void finish(uint64_t number, int32_t status);
  tenon_group_record last() const;
  uint32_t copy(tenon_group_record* out, uint32_t capacity) const;

 private:
  mutable std::mutex mutex_;
  std::vector<tenon_group_record> records_;
  uint64_t count_ = 0;  // ever
};

}  // namespace tenon::collectives
