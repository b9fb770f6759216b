// SPDX-License-Identifier: Apache-2.0
// Which libraries a plugin lacks. The dynamic loader names only the first, and so people install
// one after another; this names all, for its own message. Asked only after loading failed: a guess
// that is wrong here must never refuse a plugin that would have loaded.
#pragma once

#include <string>
#include <vector>

namespace tenon::core {

// Names in DT_NEEDED, of the library at `path` and of what it finds beside itself, that are neither
// loaded nor found where the dynamic loader looks.
std::vector<std::string> missing_libraries(const std::string& path);

}  // namespace tenon::core
