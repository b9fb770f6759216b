// SPDX-License-Identifier: Apache-2.0
// The stream-ordered pool: memory given back on a stream serves later work of that stream at once,
// and on other streams when this stream has come so far.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "queue.hpp"
#include "vram.hpp"

namespace reference {

class Pool {
 public:
  explicit Pool(Vram& vram) : vram_(vram) {}
  ~Pool() { trim(0); }

  void* allocate(uint64_t bytes, uint64_t align, const Queue* queue);  // nullptr: no room
  bool release(void* memory, Ticket freed);                            // false: not the pool's
  uint64_t trim(uint64_t keep);  // waits for work that uses what is given back
  void usage(uint64_t* reserved, uint64_t* used) const;

 private:
  struct Block {
    void* memory;
    Ticket freed;
  };

  void* reuse(uint64_t bytes, uint64_t align, const Queue* queue);

  Vram& vram_;
  mutable std::mutex mutex_;
  std::multimap<uint64_t, Block> unused_;  // by size
  std::unordered_map<void*, uint64_t> used_;
  uint64_t unused_bytes_ = 0, used_bytes_ = 0;
};

}  // namespace reference
