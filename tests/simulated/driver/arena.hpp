// SPDX-License-Identifier: Apache-2.0
// A range of addresses with memory behind it. The memory is a file without a name, so that the
// device process, other processes (IPC) and the driver itself can map it.
//
// Of a device: the addresses that callers get are not accessible in this process, and a program
// that dereferences one faults as it would with a GPU. The driver's own copies use a second
// mapping. Of the host (pinned and managed memory): the addresses are accessible, in both
// processes.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace simulated {

class Arena {
 public:
  static constexpr uint64_t kPage = 4096;

  // `imports` more bytes of addresses are kept for memory of other processes.
  Arena(uint64_t bytes, uint64_t imports, bool accessible);
  Arena(const Arena&) = delete;

  void* allocate(uint64_t bytes);  // whole pages; nullptr: no room
  bool release(void* memory);      // false: nothing was allocated there
  void release_all();
  // Memory of another process, whose file is open as `file`; nullptr: no room, or it cannot be
  // mapped.
  void* import(int file, uint64_t offset, uint64_t bytes);
  bool close_import(void* memory);

  // Whether the address lies in the range, allocated or not.
  bool contains(const void* memory) const {
    const auto at = reinterpret_cast<uintptr_t>(memory);
    return at >= base_ && at < base_ + bytes_ + imports_;
  }
  // The allocation (or import) that the address lies in.
  bool find(const void* memory, void** base, uint64_t* bytes) const;
  // Where this process can access [memory, memory + bytes), which must lie in one allocation or in
  // neighbouring ones; nullptr if it does not.
  char* access(const void* memory, uint64_t bytes) const;

  template <class F>
  void each(F&& f) const {
    std::lock_guard lock(mutex_);
    for (const auto& [at, bytes] : live_) f(reinterpret_cast<void*>(base_ + at), bytes);
  }

  uint64_t base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t imports() const { return imports_; }
  uint64_t used() const;
  int file() const { return file_; }
  uint64_t offset_of(const void* memory) const {
    return reinterpret_cast<uintptr_t>(memory) - base_;
  }

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // offset -> bytes
  static bool take(Ranges& free, uint64_t bytes, uint64_t* out);
  static void put_back(Ranges& free, uint64_t at, uint64_t bytes);

  int file_ = -1;
  uint64_t base_ = 0, bytes_, imports_;
  char* alias_ = nullptr;
  mutable std::mutex mutex_;
  Ranges free_, free_imports_, live_;  // live_ has imports, too
  uint64_t used_ = 0;
};

}  // namespace simulated
