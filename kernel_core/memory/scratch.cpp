// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/scratch.hpp"

#include <new>

namespace tenon::core {

tenon_status ScratchArena::allocate(uint64_t bytes, void** out, tenon_err* err) try {
  if (count_ == kInline) {
    if (!more_) more_ = new ScratchArena(device_, stream_);
    return more_->allocate(bytes, out, err);
  }
  void* data = nullptr;
  TENON_TRY(core::allocate(device_, bytes, stream_, &data, err));
  if (data) blocks_[count_++] = {data, bytes};
  *out = data;
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

void ScratchArena::release() noexcept {
  for (uint32_t i = 0; i < count_; ++i)
    deallocate(device_, blocks_[i].data, blocks_[i].bytes, stream_);
  delete more_;
}

}  // namespace tenon::core
