// SPDX-License-Identifier: Apache-2.0
// A stable radix sort for devices whose groups share local memory.
#pragma once

#include "axis_view.hpp"
#include "device.hpp"

namespace tenon::kernel_c {

// Whether it is faster than merging: lanes must fill tiles, and all of them together the device.
bool radix_sort_pays(const Device& device, const AxisView& view);

// Sorts the lanes of x. `*indices` receives scratch memory of uint32: for each lane, where along the axis its elements
// lie in ascending (or descending) order, lane by lane. NaN is the largest.
tenon_status radix_sort(tenon_ctx* ctx, Device& device, const tenon_tensor* x, const AxisView& view,
                        bool descending, void** indices, tenon_err* err);

}  // namespace tenon::kernel_c
