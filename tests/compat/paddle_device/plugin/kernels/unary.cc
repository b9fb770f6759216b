// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/capi/all.h>

#include <cmath>

namespace standin {

#define STANDIN_UNARY(NAME, EXPRESSION)                                     \
  template <typename T>                                                     \
  void NAME##Kernel(const phi::Context& context, const phi::DenseTensor& x, \
                    phi::DenseTensor* out) {                                \
    PD_CHECK(out->dims() == x.dims() && out->dtype() == x.dtype());         \
    const T* from = x.data<T>();                                            \
    T* to = context.Alloc<T>(out);                                          \
    for (int64_t i = 0; i < x.numel(); ++i) {                               \
      const T v = from[i];                                                  \
      to[i] = EXPRESSION;                                                   \
    }                                                                       \
  }
STANDIN_UNARY(Abs, std::abs(v))
STANDIN_UNARY(Ceil, std::ceil(v))
STANDIN_UNARY(Cos, std::cos(v))
STANDIN_UNARY(Exp, std::exp(v))
STANDIN_UNARY(Floor, std::floor(v))
STANDIN_UNARY(Log, std::log(v))
STANDIN_UNARY(Reciprocal, T(1) / v)
STANDIN_UNARY(Rsqrt, T(1) / std::sqrt(v))
STANDIN_UNARY(Sigmoid, T(1) / (T(1) + std::exp(-v)))
STANDIN_UNARY(Sign, static_cast<T>((v > T(0)) - (v < T(0))))
STANDIN_UNARY(Silu, v / (T(1) + std::exp(-v)))
STANDIN_UNARY(Sin, std::sin(v))
STANDIN_UNARY(Sqrt, std::sqrt(v))
STANDIN_UNARY(Square, v* v)
STANDIN_UNARY(Tanh, std::tanh(v))

}  // namespace standin

#define STANDIN_KERNEL(...) PD_BUILD_PHI_KERNEL(__VA_ARGS__)
STANDIN_KERNEL(abs, STANDIN, ALL_LAYOUT, standin::AbsKernel, float, double) {}
STANDIN_KERNEL(ceil, STANDIN, ALL_LAYOUT, standin::CeilKernel, float, double) {}
STANDIN_KERNEL(cos, STANDIN, ALL_LAYOUT, standin::CosKernel, float, double) {}
STANDIN_KERNEL(exp, STANDIN, ALL_LAYOUT, standin::ExpKernel, float, double) {}
STANDIN_KERNEL(floor, STANDIN, ALL_LAYOUT, standin::FloorKernel, float, double) {}
STANDIN_KERNEL(log, STANDIN, ALL_LAYOUT, standin::LogKernel, float, double) {}
STANDIN_KERNEL(reciprocal, STANDIN, ALL_LAYOUT, standin::ReciprocalKernel, float, double) {}
STANDIN_KERNEL(rsqrt, STANDIN, ALL_LAYOUT, standin::RsqrtKernel, float, double) {}
STANDIN_KERNEL(sigmoid, STANDIN, ALL_LAYOUT, standin::SigmoidKernel, float, double) {}
STANDIN_KERNEL(sign, STANDIN, ALL_LAYOUT, standin::SignKernel, float, double) {}
STANDIN_KERNEL(silu, STANDIN, ALL_LAYOUT, standin::SiluKernel, float, double) {}
STANDIN_KERNEL(sin, STANDIN, ALL_LAYOUT, standin::SinKernel, float, double) {}
STANDIN_KERNEL(sqrt, STANDIN, ALL_LAYOUT, standin::SqrtKernel, float, double) {}
STANDIN_KERNEL(square, STANDIN, ALL_LAYOUT, standin::SquareKernel, float, double) {}
STANDIN_KERNEL(tanh, STANDIN, ALL_LAYOUT, standin::TanhKernel, float, double) {}
