// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/free_bins.hpp"

#include <algorithm>

namespace tenon::core {

uint32_t FreeBins::bin_of(uint64_t bytes) {
  bytes = std::max(bytes, uint64_t{1} << kLowestOctave);  // a plugin's pool gives any size
  uint32_t octave = static_cast<uint32_t>(std::bit_width(bytes)) - 1;
  uint32_t eighth = (bytes >> (octave - 3)) & 7;
  return std::min((octave - kLowestOctave) * 8 + eighth, kBinCount - 1);
}

void FreeBins::insert(Block* block) {
  uint32_t bin = bin_of(block->bytes);
  block->list_previous = nullptr;
  block->list_next = heads_[bin];
  if (heads_[bin]) heads_[bin]->list_previous = block;
  heads_[bin] = block;
  filled_[bin / 64] |= uint64_t{1} << (bin % 64);
}

void FreeBins::remove(Block* block) {
  if (block->list_next) block->list_next->list_previous = block->list_previous;
  if (block->list_previous) {
    block->list_previous->list_next = block->list_next;
    return;
  }
  uint32_t bin = bin_of(block->bytes);
  heads_[bin] = block->list_next;
  if (!heads_[bin]) filled_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
}

uint32_t FreeBins::next_filled(uint32_t bin) const {
  if (bin >= kBinCount) return kBinCount;
  uint64_t rest = filled_[bin / 64] >> (bin % 64) << (bin % 64);
  for (uint32_t word = bin / 64;;) {
    if (rest) return word * 64 + static_cast<uint32_t>(std::countr_zero(rest));
    if (++word == kWords) return kBinCount;
    rest = filled_[word];
  }
}

Block* FreeBins::find(uint64_t bytes, uint32_t steps) const {
  Block* found = nullptr;
  for (uint32_t bin = next_filled(bin_of(bytes)); bin < kBinCount; bin = next_filled(bin + 1)) {
    uint32_t left = steps;
    for (Block* block = heads_[bin]; block && left > 0; block = block->list_next, --left)
      if (block->bytes >= bytes && (!found || block->data < found->data)) found = block;
    if (found && fit_ == Fit::kClose) break;
  }
  return found || steps == UINT32_MAX ? found : find(bytes, UINT32_MAX);
}

uint64_t FreeBins::largest() const {
  uint64_t bytes = 0;
  for (uint32_t bin = kBinCount; bin-- > 0 && bytes == 0;)
    for (Block* block = heads_[bin]; block; block = block->list_next)
      bytes = std::max(bytes, block->bytes);
  return bytes;
}

}  // namespace tenon::core
