// SPDX-License-Identifier: Apache-2.0
// The service "candidates": a layer may choose among the kernels that can run a call.
#pragma once

namespace tenon::core {

void register_candidates_service();

}  // namespace tenon::core
