// SPDX-License-Identifier: Apache-2.0
// tenon::clip_range, `min(max(x, low), high)`. aclnnClampTensor is the other way round, which differs where `low` is
// above `high`.
#include "handwritten.hpp"

namespace ascend {
namespace {

Function maximum_function{.name = "aclnnMaximum"};
Function minimum_function{.name = "aclnnMinimum"};

tenon_status run_clip_range(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                            uint32_t, tenon_err* err) try {
  Call raise(ctx, "tenon::clip_range", maximum_function, err);
  const Tensor raised = raise.scratch(outs[0]);
  if (const tenon_status status = raise.run(raise.tensor(args[0]), raise.tensor(args[1]), raised))
    return status;
  Call lower(ctx, "tenon::clip_range", minimum_function, err);
  return lower.run(raised, lower.tensor(args[2]), lower.tensor(outs[0]));
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

}  // namespace

const HandwrittenKernel kClipRange = {
    .op = "tenon::clip_range",
    .traits = 0,
    .dtype_mask = kReal,
    .run = run_clip_range,
    .functions = {&maximum_function, &minimum_function},
};

}  // namespace ascend
