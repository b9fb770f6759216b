// SPDX-License-Identifier: Apache-2.0
// Communicators and what they carry out. simulated_access() of the program says where memory of a device is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "meeting.hpp"

namespace simulated {

enum class Kind : uint32_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kSend,
  kReceive
};

struct Communicator {
  std::shared_ptr<Meeting> meeting;
  int device = 0;
};

struct Operation {
  Kind kind;
  const void* src;
  void* dst;
  uint64_t count;
  uint32_t type, reduction;
  int root;  // or the peer
  bool is_point_to_point() const { return kind == Kind::kSend || kind == Kind::kReceive; }
};

// How many elements each rank reads from src and writes to dst.
struct Counts {
  uint64_t src, dst;
};
Counts counts(const Operation& operation, const Meeting& meeting);

// Carries them out with the other ranks. False: the meeting was aborted or is in trouble.
bool run(const std::vector<Operation>& operations, Meeting& meeting);

}  // namespace simulated
