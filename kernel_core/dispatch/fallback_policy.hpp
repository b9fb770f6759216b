// SPDX-License-Identifier: Apache-2.0
// What may run on the host instead of a device, and what did.
#pragma once

#include "kernel_core/dispatch/operator.hpp"
#include "kernel_core/runtime/device.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::core {

enum class FallbackPolicy { kDeny, kWarnOnce, kAllow };

// The policy for an operator on a device kind: the most specific entry wins.
FallbackPolicy fallback_policy(const Operator& op, std::string_view device_kind);

// Refuse, warn (once for each operator and device kind) or pass, as the policy says.
tenon_status permit_fallback(const Operator& op, const Device& device, int32_t dtype,
                             tenon_err* err);

}  // namespace tenon::core
