// SPDX-License-Identifier: Apache-2.0
// The processor as device "cpu".
#pragma once

#include <tenon/abi.h>

namespace tenon::cpu {

extern const tenon_device_api kDevice;

// Remembered for the description of the device: the instruction set of the kernels.
void set_isa_name(const char* name);

}  // namespace tenon::cpu
