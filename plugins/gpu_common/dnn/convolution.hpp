// SPDX-License-Identifier: Apache-2.0
// Kernels of the vendor's library of convolutions for the plugin's own device.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tenon/abi.h>

namespace gpu::dnn {

std::vector<tenon_kernel_def> convolution_kernels();

// The operator's number among conv2d and its gradients; -1: it is none of these.
int convolution_kind(const char* op);

// The algorithm that the kernel of this rank runs for arguments of that operator; empty: it declines them.
std::string describe_algorithm(int kind, size_t rank, const tenon_value* args);

}  // namespace gpu::dnn
