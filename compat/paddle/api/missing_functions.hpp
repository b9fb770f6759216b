// SPDX-License-Identifier: Apache-2.0
// Functions that a library calls and no library defines, as sources leave those for devices that a
// build has no code for. The dynamic linker would end the process at the first call.
#pragma once

#include <string>
#include <vector>

namespace tenon::paddle {

// Bind them, in a library just opened with RTLD_LAZY, to a function that throws and says which one
// was called. Returns their names, demangled.
std::vector<std::string> bind_missing_functions(void* library);

}  // namespace tenon::paddle
