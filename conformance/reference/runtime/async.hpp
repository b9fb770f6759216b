// SPDX-License-Identifier: Apache-2.0
// The functions of the group `async`: streams here, events beside them.
#pragma once

#include "device.hpp"

namespace reference {

tenon_status stream_create(tenon_device, int32_t priority, tenon_stream* out, tenon_err*);
void stream_destroy(tenon_device, tenon_stream);

}  // namespace reference
