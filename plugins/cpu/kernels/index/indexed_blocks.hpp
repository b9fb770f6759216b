// SPDX-License-Identifier: Apache-2.0
// Index tensors on consecutive axes of a tensor: which blocks, made of the axes behind these, they pick.
#pragma once

#include "index/indices.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The tensor seen as [outer, indexed axes, inner]. The index tensors broadcast together to `shape`, which has `count`
// elements; element n picks block blocks[n].
struct IndexedBlocks {
  int64_t outer = 1, inner = 1, count = 1;
  int32_t ndim = 0;
  int64_t shape[TENON_MAX_NDIM] = {};
  const int64_t* blocks = nullptr;
};

// Checks all indices, and adds up those of one element: blocks[n] is the sum of index k times scale[k], or the index
// itself if there is one tensor of them. Negative indices count from the end.
tenon_status resolve_indices(tenon_ctx* ctx, const char* op, const tenon_tensor* x,
                             const tenon_tensor* const* indices, uint64_t count, int64_t axis,
                             const int64_t* scale, IndexedBlocks* out, tenon_err* err);

// Axes of a tensor, outermost first, with neighbours joined where the strides allow it.
class Axes {
 public:
  void add(int64_t extent, int64_t stride) {
    if (extent == 1) return;
    if (count_ > 0 && stride_[count_ - 1] == stride * extent) {
      extent_[count_ - 1] *= extent;
      stride_[count_ - 1] = stride;
      return;
    }
    extent_[count_] = extent;
    stride_[count_++] = stride;
  }
  // Where element i in row-major order lies.
  int64_t offset(int64_t i) const {
    if (count_ == 0) return 0;
    int64_t offset = 0;
    for (int k = count_ - 1; k > 0; --k) {
      offset += i % extent_[k] * stride_[k];
      i /= extent_[k];
    }
    return offset + i * stride_[0];
  }
  // One step along the only axis; 0 if there is none.
  int64_t stride() const { return count_ > 0 ? stride_[0] : 0; }
  int count() const { return count_; }
  // Takes the innermost axis off if its elements are neighbours, and returns how many these are.
  int64_t take_run() {
    if (count_ == 0 || stride_[count_ - 1] != 1) return 1;
    return extent_[--count_];
  }

 private:
  int count_ = 0;
  int64_t extent_[2 * TENON_MAX_NDIM], stride_[2 * TENON_MAX_NDIM];
};

}  // namespace tenon::cpu::TENON_CPU_ISA
