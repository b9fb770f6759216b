// SPDX-License-Identifier: Apache-2.0
// Free blocks by size, eight bins to an octave, with a bit per bin that is not empty. Nothing here
// allocates, and finding a block takes a bounded number of steps unless the alternative is a raw
// call.
#pragma once

#include <bit>

#include "kernel_core/memory/block.hpp"

namespace tenon::core {

class FreeBins {
 public:
  // Upper end of the sizes that share a bin with `bytes`.
  static constexpr uint64_t round_to_bin(uint64_t bytes) {
    uint64_t step = uint64_t{1} << (std::bit_width(bytes) - 4);
    return (bytes + step - 1) & ~(step - 1);
  }

  void insert(Block* block);
  void remove(Block* block);

  // The best fit among the first blocks of the best bin; NULL: no block is large enough.
  Block* find(uint64_t bytes) const;

  uint64_t largest() const;

 private:
  static constexpr uint32_t kLowestOctave = 6;  // 64 bytes
  static constexpr uint32_t kBinCount = (48 - kLowestOctave) * 8;
  static constexpr uint32_t kWords = (kBinCount + 63) / 64;

  static uint32_t bin_of(uint64_t bytes);
  uint32_t next_filled(uint32_t bin) const;
  Block* best_in(uint32_t bin, uint64_t bytes, uint32_t steps) const;

  Block* heads_[kBinCount] = {};
  uint64_t filled_[kWords] = {};
};

}  // namespace tenon::core
