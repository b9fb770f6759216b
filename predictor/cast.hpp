// SPDX-License-Identifier: Apache-2.0
// Programs in another precision than they were exported in.
#pragma once

#include "model.hpp"

namespace tenon::predictor {

// The same program with its operators' arithmetic in float16 or bfloat16 where mixed precision has it so
// (tenon/services/amp.h, level 1). Weights are cast once; inputs and outputs keep their dtypes. Throws Error.
Program in_mixed_precision(Program program, int32_t dtype);

}  // namespace tenon::predictor
