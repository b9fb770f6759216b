// SPDX-License-Identifier: Apache-2.0
// The service "libraries": opens libraries of code that are no plugins, under the rules for plugins.
#pragma once

namespace tenon::core {

void register_libraries_service();

}  // namespace tenon::core
