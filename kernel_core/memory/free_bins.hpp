// SPDX-License-Identifier: Apache-2.0
// Free blocks by size, eight bins to an octave, with a bit per bin that is not empty. Nothing here
// allocates.
#pragma once

#include <bit>

#include "kernel_core/memory/block.hpp"

namespace tenon::core {

// Which of the blocks that are large enough serves a request: one of the closest size, so that
// little of each is wasted, or the lowest in memory, so that long-lived blocks gather at one end
// and large ones are free at the other.
enum class Fit { kClose, kLowest };

class FreeBins {
 public:
  explicit FreeBins(Fit fit) : fit_(fit) {}

  // Upper end of the sizes that share a bin with `bytes`.
  static constexpr uint64_t round_to_bin(uint64_t bytes) {
    uint64_t step = uint64_t{1} << (std::bit_width(bytes) - 4);
    return (bytes + step - 1) & ~(step - 1);
  }

  void insert(Block* block);
  void remove(Block* block);

  // Looks at the first blocks of each bin, of all of them only if the alternative is a raw call.
  // NULL: no block is large enough.
  Block* find(uint64_t bytes, uint32_t steps = 32) const;

  uint64_t largest() const;

 private:
  static constexpr uint32_t kLowestOctave = 6;  // 64 bytes
  static constexpr uint32_t kBinCount = (48 - kLowestOctave) * 8;
  static constexpr uint32_t kWords = (kBinCount + 63) / 64;

  static uint32_t bin_of(uint64_t bytes);
  uint32_t next_filled(uint32_t bin) const;

  Fit fit_;
  Block* heads_[kBinCount] = {};
  uint64_t filled_[kWords] = {};
};

}  // namespace tenon::core
