// SPDX-License-Identifier: Apache-2.0
// The plugin's tables, with a watch around each of their functions.
#pragma once

#include <tenon/abi.h>

namespace tenon::kit {

// A copy of the tables in which each function is watched and then calls the plugin's. Kernels stay
// as they are: operators/shims.hpp watches those. Never freed: a host may keep the table.
const tenon_plugin* guarded(const tenon_plugin& original);

}  // namespace tenon::kit
