// SPDX-License-Identifier: Apache-2.0
// One function for every slot of the host table, declared from the list in tenon/abi.h. Each is
// defined in the room it belongs to; a slot without a definition does not link.
#pragma once

#include <tenon/abi.h>

namespace tenon::core::slots {
#define TENON_DECLARE_SLOT(result, name, parameters) result name parameters;
TENON_HOST_SLOTS(TENON_DECLARE_SLOT)
#undef TENON_DECLARE_SLOT
}  // namespace tenon::core::slots
