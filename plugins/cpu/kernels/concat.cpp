// SPDX-License-Identifier: Apache-2.0
// Tensors joined along an axis.
#include "kernel.hpp"

#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

tenon_status concat(tenon_ctx*, const tenon_tensor* const* tensors, uint64_t tensors_count,
                    int64_t axis, tenon_tensor* out, tenon_err*) {
  if (out->numel == 0) return TENON_OK;
  const AxisView view(out, axis);
  const int64_t size = kDtypeSize[out->dtype];
  const int64_t row_bytes = view.length * view.inner * size;
  char* to = data_of<char>(out);
  for (uint64_t t = 0; t < tensors_count; ++t) {
    const tenon_tensor* from = tensors[t];
    if (from->numel == 0) continue;
    const int64_t bytes = from->numel / view.outer * size;
    parallel(view.outer, bytes / 4, [=, data = data_of<char>(from)](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::memcpy(to + i * row_bytes, data + i * bytes, static_cast<size_t>(bytes));
      }
    });
    to += bytes;
  }
  return TENON_OK;
}
TENON_BOX_concat(concat_boxed, concat)

const tenon_kernel_def kKernels[] = {TENON_KERNEL_concat(concat, nullptr, kAllDtypes, 0, 0)};

}  // namespace

KernelList concat_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
