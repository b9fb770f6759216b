// SPDX-License-Identifier: Apache-2.0
// Communicators and what they carry out, in the order of streams.
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

// Queues them on the stream, as one piece of work. Returns an error of the driver.
int enqueue(std::shared_ptr<Communicator> communicator, std::vector<Operation> operations,
            void* stream);

}  // namespace simulated
