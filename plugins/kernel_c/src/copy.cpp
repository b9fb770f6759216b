// SPDX-License-Identifier: Apache-2.0
// cast and clone: THE conversion between dtypes and THE strided copy.
#include "copy.hpp"

#include "elementwise.hpp"
#include "kernel.hpp"

namespace tenon::kernel_c {
namespace {

constexpr ElementwiseInput kInput[] = {{"x", true}};
constexpr uint64_t kConverted = kBool | kNumbers;

tenon_status clone(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                   tenon_err* err) {
  return copy_elements(ctx, tenon_arg_tensor(&args[0]), tenon_out_tensor(&outs[0]), err);
}

tenon_status cast(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                  uint32_t nouts, tenon_err* err) {
  static constexpr char family = 0;
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  if (x->dtype == out->dtype) return clone(ctx, args, nargs, outs, nouts, err);
  if (!(kConverted >> out->dtype & 1))
    return fail(err, TENON_UNSUPPORTED,
                std::string("[cast] expected a dtype that kernels from source can write, got ") +
                    host->dtype_name(out->dtype) + "; convert on another device");
  return run_elementwise_program({.family = &family,
                                  .name = "cast_" + suffix(out->dtype) + "_from",
                                  .inputs = kInput,
                                  .ninputs = 1,
                                  .nouts = 1,
                                  .nvalues = 0,
                                  .types = nullptr,
                                  .statements = "e_x",
                                  .is_expression = true},
                                 x->dtype, ctx, &x, &out, nullptr, err);
}

// Where the device cannot write the dtype, the next one is asked.
int32_t can_cast(const tenon_value* args, uint32_t) {
  return static_cast<int32_t>(kConverted >> tenon_arg_id(&args[1]) & 1);
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::clone", kAllDtypes, kAnyStrides | TENON_KERNEL_HOST_SCALARS, clone),
    with_can_run(kernel("tenon::cast", kConverted, kAnyStrides | TENON_KERNEL_HOST_SCALARS, cast),
                 can_cast)};

}  // namespace

tenon_status copy_elements(tenon_ctx* ctx, const tenon_tensor* from, tenon_tensor* to, tenon_err* err) {
  static constexpr char family = 0;
  if (from->data == to->data && from->byte_offset == to->byte_offset) return TENON_OK;
  return run_elementwise_program({.family = &family,
                                  .name = "clone",
                                  .inputs = kInput,
                                  .ninputs = 1,
                                  .nouts = 1,
                                  .nvalues = 0,
                                  .types = nullptr,
                                  .statements = "e_x",
                                  .is_expression = true,
                                  .only_moves = true},
                                 from->dtype, ctx, &from, &to, nullptr, err);
}

KernelList copy_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
