// SwiGLU for Tenon, in C++: a kernel and its gradient.
#include <tenon/extension.hpp>

#include <cmath>
using namespace tenon;

template <class T>
void swiglu(KernelContext& context, View<const T> x, View<const T> g, View<T> out) {
  context.parallel(x.size(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = x[i] / (1 + std::exp(-x[i])) * g[i];
  });
}

std::pair<Tensor, Tensor> swiglu_grad(const Tensor& dout, const Tensor& x, const Tensor& g) {
  Tensor s = ops::sigmoid(x);
  return {dout * g * s * (1 + x * (1 - s)), dout * x * s};
}

TENON_OPERATORS(bench_cpp, m) {
  m.def("swiglu(Tensor x, Tensor g) -> Tensor")
      .elementwise()
      .kernel<swiglu<float>>("cpu")
      .kernel<swiglu<double>>("cpu")
      .grad<swiglu_grad>();
}
