// SPDX-License-Identifier: Apache-2.0
// The default memory pool of a device: memory that is freed in the order of a stream. Later work of
// that stream may use it at once, other streams when the work before the free has ended.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "errors.hpp"
#include "stream.hpp"

namespace simulated {

class Pool {
 public:
  explicit Pool(Device& device) : device_(device) {}

  Error allocate(uint64_t bytes, Stream& stream, void** out);
  Error release(void* memory, Stream& stream);
  bool owns(const void* memory);
  Error trim(uint64_t keep);
  void forget_all();

  uint64_t reserved();
  uint64_t used();
  uint64_t release_threshold = 0;

 private:
  struct Free {
    void* memory;
    uint64_t bytes;
    Stream* stream;
    Ticket ticket;
  };
  void* reuse(uint64_t bytes, Stream& stream);
  void release_unused(uint64_t keep);

  Device& device_;
  std::mutex mutex_;
  std::map<void*, uint64_t> live_;
  std::vector<Free> free_;
  uint64_t reserved_ = 0, used_ = 0;
};

}  // namespace simulated
