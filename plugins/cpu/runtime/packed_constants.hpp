// SPDX-License-Identifier: Apache-2.0
// The service "packed_constants" (tenon/services/packed_constants.h).
#pragma once

#include <tenon/abi.h>

namespace tenon::cpu {

tenon_status offer_packed_constants(const tenon_host* host, tenon_err* err);

}  // namespace tenon::cpu
