// SPDX-License-Identifier: Apache-2.0
// Who registers: set by the loader around a plugin's start(), read where something is registered.
#pragma once

namespace tenon::core {

inline constinit thread_local const void* starting_plugin = nullptr;

}  // namespace tenon::core
