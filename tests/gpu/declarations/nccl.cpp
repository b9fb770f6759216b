// SPDX-License-Identifier: Apache-2.0
// The functions that plugins/cuda declares of NCCL, beside its header. Compiled, not run.
#include <nccl.h>

#include "runtime/collective_functions.hpp"
#include "same_call.hpp"

namespace gpu::nccl {
#define CHECK_COLLECTIVE(result, member, name, parameters, optional) \
  CHECK_CALL(result, member, parameters, name)
TENON_GPU_COLLECTIVE_FUNCTIONS(CHECK_COLLECTIVE)
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
}  // namespace gpu::nccl
