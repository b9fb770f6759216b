// SPDX-License-Identifier: Apache-2.0
// Who did it: the kernel that served a call, for messages.
#pragma once

#include <tenon/kernel.hpp>

namespace tenon::validation {

// "the kernel of plugin acme for cpu"; where several may have run, or none of the device's, that.
std::string blame(const tenon_op* op, const tenon_value* args, tenon_device_id device,
                  const tenon_value* outs);

}  // namespace tenon::validation
