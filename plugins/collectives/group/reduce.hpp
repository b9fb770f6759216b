// SPDX-License-Identifier: Apache-2.0
// Elements of several ranks made into one, in the order of ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::collectives {

// Whether these elements can be reduced so; throws what is wrong.
void check_reduction(int32_t dtype, int32_t reduce);

// out[i] = parts[0][i] + parts[1][i] + ... in this order, or the product, minimum, maximum or mean. Floats of fewer than
// 32 bits are computed with as float32 and rounded once. `out` may be one of the parts.
void reduce_parts(const std::vector<const void*>& parts, void* out, uint64_t count, int32_t dtype,
                  int32_t reduce);

}  // namespace tenon::collectives
