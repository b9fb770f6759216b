// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of this program.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/store.hpp"
#include "control/time.hpp"
#include "group/rank_group.hpp"

namespace tenon::collectives::test {

using RankWork = std::function<void(RankGroup&)>;

// "tcp" or, for shared memory, "": of meetings that begin while this lives.
class Transport {
 public:
  explicit Transport(const char* name) { setenv("TENON_COLLECTIVES_TRANSPORT", name, 1); }
  ~Transport() { unsetenv("TENON_COLLECTIVES_TRANSPORT"); }
};

inline std::unique_ptr<RankGroup> join(Store& store, int32_t rank, int32_t size,
                                       uint64_t timeout = 60 * kSecond,
                                       const std::string& name = "world") {
  MeetingOptions options;
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.timeout_ns = timeout;
  std::vector<int32_t> ranks;
  for (int32_t i = 0; i < size; ++i) ranks.push_back(i);
  auto meeting = std::make_shared<Meeting>(store, options);
  return std::make_unique<RankGroup>(meeting, "world", "0", ranks, rank);
}

// work(group) on `size` ranks; what each of them threw, or "".
std::vector<std::string> run_ranks(int32_t size, const RankWork& work,
                                   uint64_t timeout = 60 * kSecond);

inline void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected \"" << part << "\" in: " << text;
}

inline tenon_group_call call_of(int32_t kind, const void* src, void* dst, uint64_t count,
                                int32_t dtype = TENON_DTYPE_I64, int32_t root = 0) {
  tenon_group_call call = {};
  call.struct_size = sizeof call;
  call.kind = kind;
  call.src = src;
  call.dst = dst;
  call.count = count;
  call.dtype = dtype;
  call.root = root;
  call.site = "train.py:88";
  return call;
}

inline tenon_group_call list_of(int32_t kind, const std::vector<tenon_transfer>& transfers,
                                int32_t root = 0) {
  tenon_group_call call = call_of(kind, nullptr, nullptr, 0, TENON_DTYPE_I64, root);
  call.transfers = transfers.data();
  call.transfer_count = static_cast<uint32_t>(transfers.size());
  return call;
}

}  // namespace tenon::collectives::test
