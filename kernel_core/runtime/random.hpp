// SPDX-License-Identifier: Apache-2.0
// Seed and position of each device's Philox4x32-10 stream. All devices start from one seed, so the
// same program draws the same numbers wherever it runs.
#pragma once

#include "kernel_core/runtime/device.hpp"

namespace tenon::core {

// Take `count` consecutive 128-bit counters: they begin at `*offset`.
void reserve_random(tenon_device_id device, uint64_t count, uint64_t* seed, uint64_t* offset);

}  // namespace tenon::core
