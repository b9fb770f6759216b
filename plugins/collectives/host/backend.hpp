// SPDX-License-Identifier: Apache-2.0
// Host memory in the shape of a device's groups for communication.
#pragma once

#include <tenon/abi.h>

namespace tenon::collectives {

extern const tenon_collective_api kHostCollective;
extern const tenon_exchange_api kHostExchange;

}  // namespace tenon::collectives
