// SPDX-License-Identifier: Apache-2.0
// How the slices of kernels/fold.c lie in memory, and how many items go over one.
#pragma once

#include "launch.hpp"
#include "source.hpp"

#include <algorithm>

namespace tenon::kernel_c {

struct Slices {
  int64_t stretches, stretch_step, length, step, inner, slice_step, inner_step, count;

  int64_t elements() const { return stretches * length; }

  // Items that share a slice; 0: an item has a whole one. Few large slices take as many as there are.
  uint32_t group(const Device& device) const {
    constexpr int64_t kShared = 64, kLarge = 16384;
    if (device.host_like() || elements() < kShared) return 0;
    const uint32_t most = elements() >= kLarge ? 1024 : 256;
    return std::min(device.limits.max_group_size, most) & ~63u;
  }
  // In a program's key: which of the three, and whether elements are neighbours.
  uint64_t variant(const Device& device) const {
    return uint64_t{group(device) / 64} << 1 | uint64_t{step == 1};
  }
  void define(SourceText& text, const Device& device) const {
    if (step == 1) text.define("UNIT_STEP", 1);
    if (const uint32_t items = group(device)) text.define("GROUP", items);
    text.add(piece::fold);
  }
  tenon_status launch(Launch& launch, const Device& device, tenon_kernel kernel) const {
    for (int64_t value :
         {stretches, stretch_step, length, step, inner, slice_step, inner_step, count})
      launch.value(value);
    const uint32_t items = group(device);
    return items ? launch.run_groups(kernel, count, items)
                 : launch.run(kernel, count, 8 * elements() + 1);
  }
};

// The channels of x [N, C, ...], which is contiguous. Where they are innermost, the batch is one stretch.
inline Slices channel_slices(const tenon_tensor* x) {
  const int64_t batch = x->shape[0], channels = x->shape[1];
  int64_t size = 1;
  for (int i = 2; i < x->ndim; ++i) size *= x->shape[i];
  const int64_t inner = std::max<int64_t>(channels, 1);
  return size == 1 ? Slices{1, 0, batch, channels, inner, 0, 1, channels}
                   : Slices{batch, channels * size, size, 1, inner, 0, size, channels};
}

}  // namespace tenon::kernel_c
