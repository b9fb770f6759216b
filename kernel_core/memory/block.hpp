// SPDX-License-Identifier: Apache-2.0
// The pieces that device memory is cut into. All bookkeeping lies in host memory, outside the
// blocks.
#pragma once

#include <tenon/abi.h>

#include <vector>

namespace tenon::core {

struct Arena;
struct Block;

// Bytes from one address to a later one.
inline uint64_t bytes_between(const void* from, const void* to) {
  return static_cast<uint64_t>(static_cast<const char*>(to) - static_cast<const char*>(from));
}

// Raw memory from the plugin: one piece, or several that lie end to end.
struct Segment {
  void* data;
  uint64_t bytes;
  Arena* arena;
  bool small;                   // serves requests of up to kSmallRequest bytes
  Block* first = nullptr;       // its blocks, in address order
  Segment* previous = nullptr;  // all segments of the device
  Segment* next = nullptr;
  std::vector<void*> seams = {};  // where its second piece begins, and each further one

  void* end() const { return static_cast<char*>(data) + bytes; }
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

  void* end() const { return static_cast<char*>(data) + bytes; }
};

inline Block* last_block(const Segment& segment) {
  Block* block = segment.first;
  while (block->next) block = block->next;
  return block;
}

}  // namespace tenon::core
