// SPDX-License-Identifier: Apache-2.0
// Complex numbers of their parts.
#include "kernel.hpp"

#include <tenon/signatures/number.h>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

tenon_status join_complex(tenon_ctx*, const tenon_tensor* re, const tenon_tensor* im,
                          tenon_tensor* out, tenon_err*) {
  const auto run = [&]<class T>(T) {
    parallel(out->numel, 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        data_of<T>(out)[2 * i] = data_of<T>(re)[i];
        data_of<T>(out)[2 * i + 1] = data_of<T>(im)[i];
      }
    });
  };
  re->dtype == TENON_DTYPE_F32 ? run(float()) : run(double());
  return TENON_OK;
}
TENON_BOX_join_complex(join_complex_boxed, join_complex);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_join_complex(
    join_complex, nullptr, dtype_bit(TENON_DTYPE_F32) | dtype_bit(TENON_DTYPE_F64), 0, 0)};

}  // namespace

KernelList complex_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
