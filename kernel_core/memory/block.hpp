// SPDX-License-Identifier: Apache-2.0
// The pieces that device memory is cut into. All bookkeeping lies in host memory, outside the
// blocks.
#pragma once

#include <tenon/abi.h>

namespace tenon::core {

struct Arena;
struct Block;

// One piece of raw memory from the plugin.
struct Segment {
  void* data;
  uint64_t bytes;
  Arena* arena;
  bool small;         // serves requests of up to kSmallRequest bytes
  Block* first;       // its blocks, in address order
  Segment* previous;  // all segments of the device
  Segment* next;
};

// Work on a foreign stream, or recorded work, that a block has to outlast.
struct StreamUse {
  tenon_stream stream;
  tenon_event event;  // recorded when the block was given back; NULL before
  uint64_t hold;      // 0, or the number of the hold that keeps the block: no stream then
  StreamUse* next;
};

enum class BlockState : uint32_t {
  kFree,     // in a bin
  kUsed,     // with a user or in a thread's cache
  kPending,  // given back, but work on other streams or recorded work may still use it
};

struct Block {
  void* data = nullptr;
  uint64_t bytes = 0;
  Segment* segment = nullptr;
  BlockState state = BlockState::kFree;
  StreamUse* uses = nullptr;
  Block* previous = nullptr;  // neighbours in the segment
  Block* next = nullptr;
  Block* list_previous = nullptr;  // free: neighbours in the bin; pending: the next one that is
  Block* list_next = nullptr;
};

}  // namespace tenon::core
