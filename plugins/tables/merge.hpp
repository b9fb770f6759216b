// SPDX-License-Identifier: Apache-2.0
// Gradients of several workers as one for each id, and ids as those of servers.
#pragma once

#include <tenon/services/tables.h>

namespace tenon::tables {

uint64_t merge(const tenon_table_block* blocks, uint32_t block_count, uint32_t dim, float divisor,
               int64_t* ids, float* gradients, float* shows, float* clicks);
void divide(const int64_t* ids, uint64_t count, uint32_t servers, int64_t* order, uint64_t* counts);

}  // namespace tenon::tables
