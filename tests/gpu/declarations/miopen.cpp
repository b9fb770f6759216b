// SPDX-License-Identifier: Apache-2.0
// The functions and numbers that plugins/rocm declares of MIOpen, beside its header. Compiled, not run.
#define __HIP_PLATFORM_AMD__ 1
#include <miopen/miopen.h>

#include "dnn/miopen.hpp"
#include "same_call.hpp"

namespace gpu::dnn {
#define CHECK_MIOPEN(result, member, name, parameters) CHECK_CALL(result, member, parameters, name)
TENON_MIOPEN_FUNCTIONS(CHECK_MIOPEN)

static_assert(sizeof(Solution) == sizeof(miopenConvSolution_t));
static_assert(offsetof(Solution, workspace_bytes) ==
              offsetof(miopenConvSolution_t, workspace_size));
static_assert(offsetof(Solution, id) == offsetof(miopenConvSolution_t, solution_id));
static_assert(offsetof(Solution, algorithm) == offsetof(miopenConvSolution_t, algorithm));

static_assert(number::kHalf == miopenHalf && number::kFloat == miopenFloat);
static_assert(number::kBfloat16 == miopenBFloat16);
static_assert(number::kConvolution == miopenConvolution);
static_assert(number::kDeterministic == MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC);
}  // namespace gpu::dnn
