// SPDX-License-Identifier: Apache-2.0
// Libraries written for PaddlePaddle, opened by the host: it decides whether their files may be.
#pragma once

#include <tenon/services/libraries.h>

#include <string>

namespace tenon::paddle {

// `flags`: TENON_LIBRARY_*. Throws Error: TENON_UNAVAILABLE with the dynamic linker's own words if the
// library could not be opened, the host's text if it must not be.
tenon_library open_library(const std::string& path, uint32_t flags);

}  // namespace tenon::paddle
