// SPDX-License-Identifier: Apache-2.0
// The vendor's run-time compiler (NVRTC, HIPRTC), opened when the first program is created, so that a
// device can be opened, and its memory used, without it.
#pragma once

#include <string>

#include "runtime/errors.hpp"

namespace gpu {

// Opens the compiler. TENON_UNAVAILABLE says what is missing and how to install it.
tenon_status load_compiler(tenon_err* err);

// "13.0"; after a success of load_compiler.
std::string compiler_version();

// Compiles `source` to a binary for `architecture`. The compiler's message goes to `err`.
tenon_status compile(const std::string& name, const std::string& source,
                     const std::string& architecture, std::string* binary, tenon_err* err);

}  // namespace gpu
