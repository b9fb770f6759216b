// SPDX-License-Identifier: Apache-2.0
// Kernels of another version: argsort from before it was told whether to be stable, and a sum that
// is missing its dtype. One that fits is beside them.
#include <paddle/phi/capi/all.h>

namespace standin {

template <typename T>
void OldArgsortKernel(const phi::Context&, const phi::DenseTensor&, int, bool, phi::DenseTensor*,
                      phi::DenseTensor*) {
  PD_THROW("called with shifted arguments");
}
template <typename T>
void OldSumKernel(const phi::Context&, const phi::DenseTensor&, const std::vector<int64_t>&, bool,
                  phi::DenseTensor*) {
  PD_THROW("called with shifted arguments");
}
template <typename T>
void ReluKernel(const phi::Context& context, const phi::DenseTensor& x, phi::DenseTensor* out) {
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = x.data<T>()[i] > T(0) ? x.data<T>()[i] : T(0);
}

}  // namespace standin

PD_BUILD_PHI_KERNEL(argsort, standin_drifted, ALL_LAYOUT, standin::OldArgsortKernel, int32_t) {}
PD_BUILD_PHI_KERNEL(sum, standin_drifted, ALL_LAYOUT, standin::OldSumKernel, float) {}
PD_BUILD_PHI_KERNEL(relu, standin_drifted, ALL_LAYOUT, standin::ReluKernel, float) {}
// A device type that is misspelt.
PD_BUILD_PHI_KERNEL(relu, standin_drfited, ALL_LAYOUT, standin::ReluKernel, double) {}
