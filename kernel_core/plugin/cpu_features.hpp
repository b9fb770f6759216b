// SPDX-License-Identifier: Apache-2.0
// Which instructions this processor has, by the names that a plugin's note uses.
#pragma once

#include <string_view>

namespace tenon::core {

// False also for names that this host does not know: better refused than killed by SIGILL.
bool cpu_has(std::string_view feature);

}  // namespace tenon::core
