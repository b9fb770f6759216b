// SPDX-License-Identifier: Apache-2.0
// The kernel of primitive_iota.
#pragma once

#include <tenon/abi.h>

namespace ascend {

tenon_kernel_def iota_kernel();

}  // namespace ascend
