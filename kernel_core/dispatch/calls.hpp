// SPDX-License-Identifier: Apache-2.0
// The service "calls": calls whose arguments the caller has checked already.
#pragma once

namespace tenon::core {

// The service is registered once, however often this is called.
void register_calls_service();

}  // namespace tenon::core
