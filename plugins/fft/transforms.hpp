// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/abi.h>

#include <span>

namespace tenon::fft {

std::span<const tenon_kernel_def> kernels();

}  // namespace tenon::fft
