// SPDX-License-Identifier: Apache-2.0
// Kernels of cuDNN for the plugin's own device.
#pragma once

#include <span>

#include <tenon/abi.h>

namespace gpu::dnn {

std::span<const tenon_kernel_def> convolution_kernels();

}  // namespace gpu::dnn
