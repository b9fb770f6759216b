// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/capi/all.h>

namespace standin {

// Positions in operands of other shapes, for numpy's broadcasting.
class Broadcast {
 public:
  Broadcast(const std::vector<int64_t>& from, const std::vector<int64_t>& to)
      : to_(to), steps_(to.size(), 0) {
    int64_t step = 1;
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t extent = from[from.size() - 1 - i];
      if (extent != 1) steps_[to.size() - 1 - i] = step;
      step *= extent;
    }
  }
  int64_t operator()(int64_t position) const {
    int64_t at = 0;
    for (size_t axis = to_.size(); axis-- > 0; position /= to_[axis])
      at += position % to_[axis] * steps_[axis];
    return at;
  }

 private:
  std::vector<int64_t> to_, steps_;
};

template <typename T, typename Result, typename Function>
void Combine(const phi::Context& context, const phi::DenseTensor& x, const phi::DenseTensor& y,
             phi::DenseTensor* out, Function function) {
  const Broadcast from_x(x.dims(), out->dims()), from_y(y.dims(), out->dims());
  const T *a = x.data<T>(), *b = y.data<T>();
  Result* to = context.Alloc<Result>(out);
  for (int64_t i = 0; i < out->numel(); ++i) to[i] = function(a[from_x(i)], b[from_y(i)]);
}

template <typename T>
void AddKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::DenseTensor& y,
               phi::DenseTensor* out) {
  Combine<T, T>(context, x, y, out, [](T a, T b) { return a + b; });
}
template <typename T>
void MultiplyKernel(const phi::Context& context, const phi::DenseTensor& x,
                    const phi::DenseTensor& y, phi::DenseTensor* out) {
  Combine<T, T>(context, x, y, out, [](T a, T b) { return a * b; });
}
// Clears its output before it reads: no kernel to be given its input as output.
template <typename T>
void SubtractKernel(const phi::Context& context, const phi::DenseTensor& x,
                    const phi::DenseTensor& y, phi::DenseTensor* out) {
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i < out->numel(); ++i) to[i] = T(0);
  Combine<T, T>(context, x, y, out, [](T a, T b) { return a - b; });
}
#define STANDIN_BINARY(NAME, RESULT, EXPRESSION)                                 \
  template <typename T>                                                          \
  void NAME##Kernel(const phi::Context& context, const phi::DenseTensor& x,      \
                    const phi::DenseTensor& y, phi::DenseTensor* out) {          \
    Combine<T, RESULT>(context, x, y, out, [](T a, T b) { return EXPRESSION; }); \
  }
STANDIN_BINARY(Divide, T, a / b)
STANDIN_BINARY(Maximum, T, a < b ? b : a)
STANDIN_BINARY(Minimum, T, b < a ? b : a)
STANDIN_BINARY(Equal, bool, a == b)
STANDIN_BINARY(NotEqual, bool, a != b)
STANDIN_BINARY(LessThan, bool, a < b)
STANDIN_BINARY(LessEqual, bool, a <= b)
STANDIN_BINARY(GreaterThan, bool, a > b)
STANDIN_BINARY(GreaterEqual, bool, a >= b)
// Gradients in terms of the result.
STANDIN_BINARY(SigmoidGrad, T, b* a*(T(1) - a))
STANDIN_BINARY(TanhGrad, T, b*(T(1) - a * a))
template <typename T>
void ReluKernel(const phi::Context& context, const phi::DenseTensor& x, phi::DenseTensor* out) {
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = x.data<T>()[i] > T(0) ? x.data<T>()[i] : T(0);
}
template <typename T>
void ReluGradKernel(const phi::Context& context, const phi::DenseTensor& out,
                    const phi::DenseTensor& out_grad, phi::DenseTensor* x_grad) {
  T* to = context.Alloc<T>(x_grad);
  for (int64_t i = 0; i < out.numel(); ++i)
    to[i] = out.data<T>()[i] > T(0) ? out_grad.data<T>()[i] : T(0);
}

}  // namespace standin

#define STANDIN_KERNEL(...) PD_BUILD_PHI_KERNEL(__VA_ARGS__)
STANDIN_KERNEL(add, STANDIN, ALL_LAYOUT, standin::AddKernel, float, double, int32_t,
               phi::dtype::float16) {}
STANDIN_KERNEL(multiply, STANDIN, ALL_LAYOUT, standin::MultiplyKernel, float, double) {}
STANDIN_KERNEL(subtract, STANDIN, ALL_LAYOUT, standin::SubtractKernel, float, double) {}
STANDIN_KERNEL(divide, STANDIN, ALL_LAYOUT, standin::DivideKernel, float, double) {}
STANDIN_KERNEL(maximum, STANDIN, ALL_LAYOUT, standin::MaximumKernel, float, int32_t) {}
STANDIN_KERNEL(minimum, STANDIN, ALL_LAYOUT, standin::MinimumKernel, float, int32_t) {}
#define STANDIN_COMPARISON(NAME, KERNEL)                                             \
  STANDIN_KERNEL(NAME, STANDIN, ALL_LAYOUT, standin::KERNEL, float, int32_t, bool) { \
    kernel->OutputAt(0).SetDataType(phi::DataType::BOOL);                            \
  }
STANDIN_COMPARISON(equal, EqualKernel)
STANDIN_COMPARISON(not_equal, NotEqualKernel)
STANDIN_COMPARISON(less_than, LessThanKernel)
STANDIN_COMPARISON(less_equal, LessEqualKernel)
STANDIN_COMPARISON(greater_than, GreaterThanKernel)
STANDIN_COMPARISON(greater_equal, GreaterEqualKernel)
STANDIN_KERNEL(sigmoid_grad, STANDIN, ALL_LAYOUT, standin::SigmoidGradKernel, float, double) {}
STANDIN_KERNEL(tanh_grad, STANDIN, ALL_LAYOUT, standin::TanhGradKernel, float, double) {}
STANDIN_KERNEL(relu, STANDIN, ALL_LAYOUT, standin::ReluKernel, float) {}
STANDIN_KERNEL(relu_grad, STANDIN, ALL_LAYOUT, standin::ReluGradKernel, float) {}
