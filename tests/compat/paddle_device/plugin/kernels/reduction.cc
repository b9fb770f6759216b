// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/capi/all.h>

#include <algorithm>
#include <cmath>

namespace standin {

// The element of the result that element `position` of `x` goes to.
int64_t Target(const std::vector<int64_t>& dims, const std::vector<int64_t>& axes,
               int64_t position) {
  int64_t at = 0, step = 1;
  for (size_t axis = dims.size(); axis-- > 0; position /= dims[axis]) {
    if (std::count(axes.begin(), axes.end(), static_cast<int64_t>(axis))) continue;
    at += position % dims[axis] * step;
    step *= dims[axis];
  }
  return at;
}

template <typename T>
void SumKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray& axes,
               phi::DataType, bool, phi::DenseTensor* out) {
  T* to = context.Alloc<T>(out);
  std::fill(to, to + out->numel(), T(0));
  const auto dims = x.dims();
  for (int64_t i = 0; i < x.numel(); ++i) to[Target(dims, axes.GetData(), i)] += x.data<T>()[i];
}

template <typename T>
void MeanKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray& axes,
                bool keep_dim, phi::DenseTensor* out) {
  // Through a temporary tensor, as composed kernels do.
  phi::DenseTensor sum;
  sum.Resize(out->dims());
  SumKernel<T>(context, x, axes, x.dtype(), keep_dim, &sum);
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i < out->numel(); ++i) to[i] = sum.data<T>()[i] * out->numel() / x.numel();
}

template <typename T>
void ReduceTo(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray& axes,
              bool want_largest, phi::DenseTensor* out) {
  T* to = context.Alloc<T>(out);
  std::fill(to, to + out->numel(),
            want_largest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max());
  const auto dims = x.dims();
  for (int64_t i = 0; i < x.numel(); ++i) {
    T& result = to[Target(dims, axes.GetData(), i)];
    result = want_largest ? std::max(result, x.data<T>()[i]) : std::min(result, x.data<T>()[i]);
  }
}
template <typename T>
void MaxKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray& axes,
               bool, phi::DenseTensor* out) {
  ReduceTo<T>(context, x, axes, true, out);
}
template <typename T>
void MinKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray& axes,
               bool, phi::DenseTensor* out) {
  ReduceTo<T>(context, x, axes, false, out);
}

template <typename T>
void SoftmaxGradKernel(const phi::Context& context, const phi::DenseTensor& out,
                       const phi::DenseTensor& out_grad, int axis, phi::DenseTensor* x_grad) {
  PD_CHECK(axis >= 0, "axis ", axis);
  const auto dims = out.dims();
  std::vector<T> sums(out.numel(), T(0));
  const T *y = out.data<T>(), *dy = out_grad.data<T>();
  T* to = context.Alloc<T>(x_grad);
  for (int64_t i = 0; i < out.numel(); ++i) sums[Target(dims, {axis}, i)] += y[i] * dy[i];
  for (int64_t i = 0; i < out.numel(); ++i) to[i] = y[i] * (dy[i] - sums[Target(dims, {axis}, i)]);
}

template <typename T>
void SoftmaxKernel(const phi::Context& context, const phi::DenseTensor& x, int axis,
                   phi::DenseTensor* out) {
  PD_CHECK(axis >= 0, "axis ", axis);
  const auto dims = x.dims();
  const std::vector<int64_t> axes = {axis};
  std::vector<T> largest(x.numel(), -std::numeric_limits<T>::infinity()), sums(x.numel(), T(0));
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i < x.numel(); ++i) {
    T& m = largest[Target(dims, axes, i)];
    m = std::max(m, x.data<T>()[i]);
  }
  for (int64_t i = 0; i < x.numel(); ++i) {
    to[i] = std::exp(x.data<T>()[i] - largest[Target(dims, axes, i)]);
    sums[Target(dims, axes, i)] += to[i];
  }
  for (int64_t i = 0; i < x.numel(); ++i) to[i] /= sums[Target(dims, axes, i)];
}

// Stable, ascending or descending.
template <typename T>
void ArgsortKernel(const phi::Context& context, const phi::DenseTensor& x, int axis,
                   bool descending, bool stable, phi::DenseTensor* out, phi::DenseTensor* indices) {
  const auto dims = x.dims();
  PD_CHECK(axis >= 0 && axis < static_cast<int>(dims.size()) && stable, "axis ", axis);
  T* values = context.Alloc<T>(out);
  int64_t* from = context.Alloc<int64_t>(indices);
  const int64_t length = dims[axis];
  int64_t inner = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  std::vector<int64_t> order(length);
  for (int64_t row = 0; row < x.numel() / length; ++row) {
    const int64_t start = row / inner * inner * length + row % inner;
    const T* first = x.data<T>() + start;
    for (int64_t i = 0; i < length; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return descending ? first[a * inner] > first[b * inner] : first[a * inner] < first[b * inner];
    });
    for (int64_t i = 0; i < length; ++i) {
      values[start + i * inner] = first[order[i] * inner];
      from[start + i * inner] = order[i];
    }
  }
}

}  // namespace standin

#define STANDIN_KERNEL(...) PD_BUILD_PHI_KERNEL(__VA_ARGS__)
STANDIN_KERNEL(sum, STANDIN, ALL_LAYOUT, standin::SumKernel, float, double) {}
STANDIN_KERNEL(mean, STANDIN, ALL_LAYOUT, standin::MeanKernel, float, double) {}
STANDIN_KERNEL(max, STANDIN, ALL_LAYOUT, standin::MaxKernel, float, int32_t) {}
STANDIN_KERNEL(min, STANDIN, ALL_LAYOUT, standin::MinKernel, float, int32_t) {}
STANDIN_KERNEL(softmax_grad, STANDIN, ALL_LAYOUT, standin::SoftmaxGradKernel, float) {}
STANDIN_KERNEL(softmax, STANDIN, ALL_LAYOUT, standin::SoftmaxKernel, float) {}
STANDIN_KERNEL(argsort, STANDIN, ALL_LAYOUT, standin::ArgsortKernel, float, int32_t) {
  kernel->OutputAt(1).SetDataType(phi::DataType::INT64);
}
