// SPDX-License-Identifier: Apache-2.0
// Every list of kernels, once.
#pragma once

#include "table.hpp"

namespace tenon::kernel_c {

// The formatter gives this list another layout at every run.
// clang-format off
#define TENON_KERNEL_C_LISTS(X) \
  X(generated) X(complex) X(copy) X(creation) X(reduction) X(matmul) X(scan) X(running) X(indexing) \
  X(random) X(nonzero) X(sort) X(slices) X(batch_norm_grad) X(pooling) \
  X(lstm) X(fusion)
// clang-format on

#define TENON_KERNEL_C_DECLARE(name) KernelList name##_kernels();
TENON_KERNEL_C_LISTS(TENON_KERNEL_C_DECLARE)
#undef TENON_KERNEL_C_DECLARE

}  // namespace tenon::kernel_c
