// SPDX-License-Identifier: Apache-2.0
// Kernels of the vendor's FFT library for the plugin's own device.
#pragma once

#include <span>

#include <tenon/abi.h>

namespace gpu::fft {

std::span<const tenon_kernel_def> transform_kernels();

}  // namespace gpu::fft
