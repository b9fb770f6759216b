// SPDX-License-Identifier: Apache-2.0
// Kernels of the vendor's library of convolutions for the plugin's own device.
#pragma once

#include <vector>

#include <tenon/abi.h>

namespace gpu::dnn {

std::vector<tenon_kernel_def> convolution_kernels();

}  // namespace gpu::dnn
