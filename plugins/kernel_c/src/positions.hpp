// SPDX-License-Identifier: Apache-2.0
// Tensors of positions, as indexing operators take them.
#pragma once

#include "device.hpp"
#include "layout.hpp"

namespace tenon::kernel_c {

// `*linear`: scratch memory with int64 linear along axes of x that begin at `axis`, one for each
// element of the broadcast of the `count` index tensors; -1 where a position is outside. Whether
// one is, is an error only where looking costs little: on processors, or with
// TENON_KERNEL_C_CHECK=1.
struct LinearIndices {
  void* linear = nullptr;
  int32_t ndim = 0;  // of the broadcast
  int64_t shape[TENON_MAX_NDIM];
  int64_t count = 1;
};
tenon_status linear_indices(tenon_ctx* ctx, Device& device, const char* op, const tenon_tensor* x,
                            const tenon_tensor* const* indices, uint64_t count, int64_t axis,
                            LinearIndices* out, tenon_err* err);

// int64 numbers that a kernel has left in scratch memory of `device`. Waits for it.
tenon_status read_back(const Device& device, void* scratch, int64_t* out, int64_t count,
                       tenon_err* err);

}  // namespace tenon::kernel_c
