// SwiGLU for Paddle, in C++: a kernel, the kernel of its gradient, shape and dtype rules.
#include <cmath>
#include <vector>

#include "paddle/extension.h"

template <typename T>
void swiglu_kernel(const T* x, const T* g, T* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] / (1 + std::exp(-x[i])) * g[i];
}

template <typename T>
void swiglu_grad_kernel(const T* x, const T* g, const T* dout, T* dx, T* dg, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    T s = 1 / (1 + std::exp(-x[i]));
    dx[i] = dout[i] * g[i] * s * (1 + x[i] * (1 - s));
    dg[i] = dout[i] * x[i] * s;
  }
}

std::vector<paddle::Tensor> SwigluForward(const paddle::Tensor& x, const paddle::Tensor& g) {
  auto out = paddle::empty_like(x);
  PD_DISPATCH_FLOATING_TYPES(x.type(), "swiglu", ([&] {
                               swiglu_kernel<data_t>(x.data<data_t>(), g.data<data_t>(),
                                                     out.data<data_t>(), x.numel());
                             }));
  return {out};
}

std::vector<paddle::Tensor> SwigluBackward(const paddle::Tensor& x, const paddle::Tensor& g,
                                           const paddle::Tensor& dout) {
  auto dx = paddle::empty_like(x), dg = paddle::empty_like(g);
  PD_DISPATCH_FLOATING_TYPES(x.type(), "swiglu_grad", ([&] {
                               swiglu_grad_kernel<data_t>(x.data<data_t>(), g.data<data_t>(),
                                                          dout.data<data_t>(), dx.data<data_t>(),
                                                          dg.data<data_t>(), x.numel());
                             }));
  return {dx, dg};
}

std::vector<std::vector<int64_t>> SwigluShape(std::vector<int64_t> x, std::vector<int64_t> g) {
  return {x};
}
std::vector<paddle::DataType> SwigluDtype(paddle::DataType x, paddle::DataType g) { return {x}; }

PD_BUILD_OP(bench_swiglu)
    .Inputs({"X", "G"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(SwigluForward))
    .SetInferShapeFn(PD_INFER_SHAPE(SwigluShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(SwigluDtype));

PD_BUILD_GRAD_OP(bench_swiglu)
    .Inputs({"X", "G", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X"), paddle::Grad("G")})
    .SetKernelFn(PD_KERNEL(SwigluBackward));
