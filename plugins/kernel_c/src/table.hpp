// SPDX-License-Identifier: Apache-2.0
// Lists of kernels: each file of kernels has one, the plugin hands out their sum.
#pragma once

#include <tenon/abi.h>

#include <span>

namespace tenon::kernel_c {

using KernelList = std::span<const tenon_kernel_def>;

constexpr tenon_kernel_def kernel(const char* op, uint64_t dtype_mask, uint32_t traits,
                                  tenon_boxed_fn run) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = traits,
          .op = op,
          .device = TENON_DEVICE_COMPILED,
          .schema_hash = 0,
          .dtype_mask = dtype_mask,
          .score = 0,
          .reserved = 0,
          .boxed = run,
          .typed = nullptr,
          .can_run = nullptr};
}

// A kernel that looks at its arguments before it is chosen.
constexpr tenon_kernel_def with_can_run(tenon_kernel_def def,
                                        int32_t (*can_run)(const tenon_value*, uint32_t)) {
  def.can_run = can_run;
  return def;
}

inline constexpr uint32_t kAnyStrides = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT;

}  // namespace tenon::kernel_c
