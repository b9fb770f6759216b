// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/capi/all.h>

#include <stdexcept>

namespace standin {

// Kernels that do wrong: each serves a dtype of its own of a unary operator.
template <typename T>
void WrongKernel(const phi::Context& context, const phi::DenseTensor& x, phi::DenseTensor* out);
template <>
void WrongKernel<float>(const phi::Context&, const phi::DenseTensor&, phi::DenseTensor*) {
  throw std::runtime_error("the device is on fire");
}
template <>
void WrongKernel<double>(const phi::Context&, const phi::DenseTensor&, phi::DenseTensor*) {}
template <>
void WrongKernel<phi::dtype::float16>(const phi::Context& context, const phi::DenseTensor&,
                                      phi::DenseTensor* out) {
  context.Alloc<float>(out);
}
template <typename T>
void NoMemoryKernel(const phi::Context&, const phi::DenseTensor&, phi::DenseTensor*) {
  phi::DenseTensor none;
  none.Resize({3});
  none.data<T>()[0] = T(1);
}

// Takes the memory of its result and writes none of it, or all but the last element.
template <typename T>
void NothingKernel(const phi::Context& context, const phi::DenseTensor&, phi::DenseTensor* out) {
  context.Alloc<T>(out);
}
template <typename T>
void MostKernel(const phi::Context& context, const phi::DenseTensor& x, phi::DenseTensor* out) {
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i + 1 < x.numel(); ++i) to[i] = x.data<T>()[i];
}
// Allocates a larger result of its own, of which it writes nothing.
template <typename T>
void ElsewhereKernel(const phi::Context& context, const phi::DenseTensor& x,
                     phi::DenseTensor* out) {
  context.Alloc<T>(out, 2 * x.memory_size() + 64);
}
// Writes one element for each of its input's, though its result has one.
template <typename T>
void TooManyKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray&,
                   phi::DataType, bool, phi::DenseTensor* out) {
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = x.data<T>()[i];
}

}  // namespace standin

#define STANDIN_KERNEL(...) PD_BUILD_PHI_KERNEL(__VA_ARGS__)
STANDIN_KERNEL(sin, STANDIN, ALL_LAYOUT, standin::WrongKernel, float, double, phi::dtype::float16) {
}
STANDIN_KERNEL(cos, STANDIN, ALL_LAYOUT, standin::NoMemoryKernel, float) {}
STANDIN_KERNEL(exp, STANDIN, ALL_LAYOUT, standin::NothingKernel, float) {}
STANDIN_KERNEL(log, STANDIN, ALL_LAYOUT, standin::MostKernel, float) {}
STANDIN_KERNEL(sqrt, STANDIN, ALL_LAYOUT, standin::ElsewhereKernel, float) {}
STANDIN_KERNEL(sum, STANDIN, ALL_LAYOUT, standin::TooManyKernel, float) {}
