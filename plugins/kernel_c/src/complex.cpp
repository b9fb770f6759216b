// SPDX-License-Identifier: Apache-2.0
// Complex numbers of their parts.
#include "elementwise.hpp"
#include "kernel.hpp"

namespace tenon::kernel_c {
namespace {

constexpr ElementwiseInput kParts[] = {{"re", false}, {"im", false}};

tenon_status join_complex(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                          uint32_t, tenon_err* err) {
  static constexpr char family = 0;
  const tenon_tensor* parts[] = {tenon_arg_tensor(&args[0]), tenon_arg_tensor(&args[1])};
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  const std::string make = "r0 = tk_make_" + suffix(out->dtype) + "(e_re, e_im);";
  return run_elementwise_program({.family = &family,
                                  .name = "join_complex",
                                  .inputs = kParts,
                                  .ninputs = 2,
                                  .nouts = 1,
                                  .nvalues = 0,
                                  .types = nullptr,
                                  .statements = make},
                                 real_dtype(out->dtype), ctx, parts, &out, nullptr, err);
}

const tenon_kernel_def kKernels[] = {kernel("tenon::join_complex",
                                            dtype_bit(TENON_DTYPE_F32) | dtype_bit(TENON_DTYPE_F64),
                                            kAnyStrides, join_complex)};

}  // namespace

KernelList complex_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
