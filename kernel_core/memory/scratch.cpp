// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/scratch.hpp"

#include <new>

namespace tenon::core {

tenon_status ScratchArena::allocate(uint64_t bytes, void** out, tenon_err* err) try {
  if (count_ >= kInline) {
    if (!more_) more_ = new std::vector<Block>;
    more_->reserve(more_->size() + 1);  // fails here, before there is a block to lose
  }
  Block block = {nullptr, bytes};
  TENON_TRY(core::allocate(device_, bytes, stream_, &block.data, err));
  *out = block.data;
  if (!block.data) return TENON_OK;
  if (count_ < kInline)
    blocks_[count_] = block;
  else
    more_->push_back(block);
  ++count_;
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

void ScratchArena::release() noexcept {
  for (uint32_t i = 0; i < count_; ++i) {
    const Block& block = i < kInline ? blocks_[i] : (*more_)[i - kInline];
    deallocate(device_, block.data, block.bytes, stream_);
  }
  delete more_;
}

}  // namespace tenon::core
