// SPDX-License-Identifier: Apache-2.0
// Counts calls of malloc made by the calling thread. Sanitizers bring their own malloc: there the
// count stays 0.
#pragma once

#include <cstdint>

namespace tenon::test {

uint64_t malloc_count();

}  // namespace tenon::test
