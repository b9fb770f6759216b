// SPDX-License-Identifier: Apache-2.0
// torch.autocast on the device: PyTorch's own lists of what is worth a lower precision and what needs float32.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {

#define TENON_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TENON_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TENON_SET_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TENON_WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(TENON_LOWER)
  AT_FORALL_FP32(TENON_FLOAT32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TENON_SET_DTYPE)
  AT_FORALL_PROMOTE(TENON_WIDEST)
}

}  // namespace at::autocast
