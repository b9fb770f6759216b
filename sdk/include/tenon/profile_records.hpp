// SPDX-License-Identifier: Apache-2.0
// What the group `profile` of any device needs beside the times of its work: records that wait to be drained, and pairs
// of readings of the two clocks.
#pragma once

#include <tenon/abi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <deque>

namespace tenon {

// CLOCK_MONOTONIC.
inline uint64_t host_clock_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// Without its times.
inline tenon_profile_record profile_record(uint32_t kind, const char* name, uint64_t bytes,
                                           tenon_stream stream) {
  tenon_profile_record record = {};
  record.struct_size = sizeof record;
  record.kind = kind;
  record.bytes = kind == TENON_PROFILE_KERNEL ? 0 : bytes;
  record.stream = stream;
  std::strncpy(record.name, name, sizeof record.name - 1);
  return record;
}

// Records of finished work, in any order. The caller locks.
class ProfileRecords {
 public:
  void add(const tenon_profile_record& record) { records_.push_back(record); }

  // Moves up to `capacity` of them out, oldest first.
  uint32_t drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity) {
    std::stable_sort(records_.begin(), records_.end(),
                     [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    const auto count = static_cast<uint32_t>(std::min<size_t>(capacity, records_.size()));
    for (uint32_t i = 0; i < count; ++i) {
      // The caller's records may be shorter than ours, or longer.
      tenon_profile_record record = records_[i];
      record.struct_size = std::min<uint32_t>(record_size, sizeof record);
      std::memcpy(reinterpret_cast<char*>(out) + uint64_t{i} * record_size, &record,
                  record.struct_size);
    }
    records_.erase(records_.begin(), records_.begin() + count);
    return count;
  }

 private:
  std::deque<tenon_profile_record> records_;
};

// The same moment on both clocks. `read` waits until the device has told its time, and returns an error or 0; that time lies
// between two readings of the host's clock, and the closest of a few pairs is the best.
template <class Read>
auto pair_clocks(uint64_t* host_ns, uint64_t* device_ns, Read&& read) {
  constexpr int kTries = 5;
  uint64_t best = UINT64_MAX, best_host = 0, best_device = 0;
  for (int i = 0; i < kTries; ++i) {
    uint64_t time = 0;
    const uint64_t before = host_clock_ns();
    const auto error = read(&time);
    const uint64_t after = host_clock_ns();
    if (error) return error;
    if (after - before >= best) continue;
    best = after - before;
    best_host = before + best / 2;
    best_device = time;
  }
  *host_ns = best_host;
  *device_ns = best_device;
  return decltype(read(host_ns)){};
}

}  // namespace tenon
