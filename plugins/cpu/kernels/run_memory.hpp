// SPDX-License-Identifier: Apache-2.0
// Scratch memory: kernels have a context that owns it, runs of executables have none.
#pragma once

#include "parallel_scratch.hpp"

#include <tenon/tensor.hpp>

namespace tenon::cpu {

// Scratch memory of one run of an executable, which ends with the object. It comes from the
// allocator of the device, as a context's does.
class RunMemory {
 public:
  explicit RunMemory(tenon_device_id device) : device_(device) {}
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  tenon_status allocate(uint64_t bytes, void** out, tenon_err* err) {
    if (count_ == kMaxBlocks) {
      return fail(err, TENON_INTERNAL, "a run of an executable allocates too often");
    }
    const auto shape = static_cast<int64_t>(bytes);
    tenon_tensor* made = nullptr;
    const tenon_status status = host->tensor_create(device_, TENON_DTYPE_U8, 1, &shape, &made, err);
    if (status != TENON_OK) return status;
    blocks_[count_++] = Tensor::adopt(made);
    *out = made->data;
    return TENON_OK;
  }

 private:
  static constexpr int kMaxBlocks = 4;
  tenon_device_id device_;
  Tensor blocks_[kMaxBlocks];
  int count_ = 0;
};

// By who owns the memory: a kernel's context or a run of an executable.
inline tenon_status allocate_scratch(tenon_ctx* ctx, uint64_t bytes, void** out, tenon_err* err) {
  return host->scratch(ctx, bytes, out, err);
}
inline tenon_status allocate_scratch(RunMemory* run, uint64_t bytes, void** out, tenon_err* err) {
  return run->allocate(bytes, out, err);
}

// As for a context (parallel_scratch.hpp).
template <class F>
inline tenon_status parallel_for_with_scratch(RunMemory* run, int64_t n, int64_t work,
                                              int64_t bytes, tenon_err* err, F&& f) {
  const int64_t stride = (bytes + 63) & ~int64_t{63};
  void* memory = nullptr;
  if (bytes > 0) {
    const auto total = static_cast<uint64_t>(stride * workers_for(n, work));
    const tenon_status status = run->allocate(total, &memory, err);
    if (status != TENON_OK) return status;
  }
  parallel_for_in_slots(memory, stride, n, work, f);
  return TENON_OK;
}

}  // namespace tenon::cpu
