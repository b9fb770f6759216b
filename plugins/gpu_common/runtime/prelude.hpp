// SPDX-License-Identifier: Apache-2.0
// Kernel C in CUDA C++ and HIP C++: what stands in front of every source.
#pragma once

namespace gpu {

const char* prelude();

}  // namespace gpu
