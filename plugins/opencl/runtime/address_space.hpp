// SPDX-License-Identifier: Apache-2.0
// Addresses for memory that has none.
//
// A cl_mem is a handle, but the host's allocator cuts memory into blocks and does arithmetic on
// addresses. So each device reserves a range of the process's address space, with no access rights,
// and each buffer takes whole slots of it. An address is turned back into buffer and offset by one
// load from a table, without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "driver.hpp"

namespace opencl {

struct Buffer {
  cl_mem memory;
  uintptr_t address;
  uint64_t bytes;
};

class AddressSpace {
 public:
  AddressSpace() = default;
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace();

  // Returns false if the system grants no range of `bytes`. Throws std::bad_alloc.
  bool reserve(uint64_t bytes);

  // Gives `memory` an address, a multiple of `align`. NULL: no gap is large enough,
  // or the host has no memory for the entry.
  Buffer* place(cl_mem memory, uint64_t bytes, uint64_t align);
  // The buffer is forgotten; its address may be given out again.
  void remove(Buffer* buffer);

  // The buffer in which an address lies, or NULL.
  Buffer* find(const void* address) const {
    uint64_t slot = (reinterpret_cast<uintptr_t>(address) - base_) / kSlotBytes;
    return slot < slots_ ? table_[slot].load(std::memory_order_acquire) : nullptr;
  }
  bool contains(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - base_ < slots_ * kSlotBytes;
  }

 private:
  // The host asks for 2 MiB at least, so little is wasted. Addresses cost nothing.
  static constexpr uint64_t kSlotBytes = uint64_t{2} << 20;

  void* range_ = nullptr;  // what mmap returned
  uint64_t range_bytes_ = 0;
  uintptr_t base_ = 0;  // the first slot
  uint64_t slots_ = 0;
  std::unique_ptr<std::atomic<Buffer*>[]> table_;
  std::mutex mutex_;  // of writers
};

}  // namespace opencl
