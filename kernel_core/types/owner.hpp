// SPDX-License-Identifier: Apache-2.0
// Who registers: set by the loader around a plugin's start(), read where something is registered.
#pragma once

namespace tenon::core {

extern constinit thread_local const void* starting_plugin;

}  // namespace tenon::core
