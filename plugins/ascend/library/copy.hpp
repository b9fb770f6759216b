// SPDX-License-Identifier: Apache-2.0
// The kernel of tenon::clone.
#pragma once

#include <tenon/abi.h>

namespace ascend {

// Fills `kernel`; false: this version of CANN lacks what it needs.
bool find_copy(tenon_kernel_def& kernel);

}  // namespace ascend
