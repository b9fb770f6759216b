// SPDX-License-Identifier: Apache-2.0
// attention and attention_grad (opdefs/attention.yaml) on tensor cores.
#pragma once

#include <span>

#include <tenon/abi.h>

namespace gpu::kernels {

std::span<const tenon_kernel_def> attention_kernels();
std::span<const tenon_kernel_def> attention_grad_kernels();

}  // namespace gpu::kernels
