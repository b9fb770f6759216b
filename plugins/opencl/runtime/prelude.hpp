// SPDX-License-Identifier: Apache-2.0
// Kernel C in OpenCL C 1.2: what stands in front of every source.
#pragma once

#include <string>

namespace opencl {

std::string prelude(bool has_float64);

}  // namespace opencl
