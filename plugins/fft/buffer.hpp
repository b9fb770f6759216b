// SPDX-License-Identifier: Apache-2.0
// Working memory, aligned to cache lines and not initialised. Each thread keeps a few large blocks for its
// next transforms: a new block costs a page fault for each 4096 bytes, more than what is done with them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace tenon::fft {

struct Block {
  void* data = nullptr;
  size_t bytes = 0;
};

// The blocks that a thread keeps.
class KeptBlocks {
 public:
  ~KeptBlocks() {
    for (Block& block : blocks_) release(block);
  }
  Block take(size_t bytes) {
    for (Block& block : blocks_)
      if (block.bytes >= bytes && block.bytes <= 2 * bytes) return std::exchange(block, {});
    return {::operator new(bytes, kAlignment), bytes};
  }
  // Keeps the block in the place of the smallest one.
  void give_back(Block block) {
    if (block.bytes >= kMinBytes && block.bytes <= kMaxBytes) {
      Block& smallest =
          *std::min_element(blocks_, blocks_ + kCount,
                            [](const Block& a, const Block& b) { return a.bytes < b.bytes; });
      if (smallest.bytes < block.bytes) std::swap(smallest, block);
    }
    release(block);
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  static constexpr size_t kMinBytes = 64 << 10, kMaxBytes = 16 << 20;
  static constexpr int kCount = 3;

  static void release(Block block) { ::operator delete(block.data, kAlignment); }

  Block blocks_[kCount];
};

inline KeptBlocks& kept_blocks() {
  static thread_local KeptBlocks kept;
  return kept;
}

template <class T>
class Buffer {
 public:
  Buffer() = default;
  // std::bad_alloc where memory is short.
  explicit Buffer(int64_t count)
      : block_(kept_blocks().take(static_cast<size_t>(count) * sizeof(T))) {}
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, {})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() {
    if (block_.data != nullptr) kept_blocks().give_back(block_);
  }
  T* data() const { return static_cast<T*>(block_.data); }

 private:
  Block block_;
};

}  // namespace tenon::fft
