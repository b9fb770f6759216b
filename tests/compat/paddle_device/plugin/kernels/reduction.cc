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

// Stable, ascending or descending, along the last axis.
template <typename T>
void ArgsortKernel(const phi::Context& context, const phi::DenseTensor& x, int axis,
                   bool descending, bool stable, phi::DenseTensor* out, phi::DenseTensor* indices) {
  const auto dims = x.dims();
  PD_CHECK(axis + 1 == static_cast<int>(dims.size()) && stable, "only along the last axis, got ",
           axis);
  T* values = context.Alloc<T>(out);
  int64_t* from = context.Alloc<int64_t>(indices);
  const int64_t length = dims.back();
  for (int64_t row = 0; row < x.numel() / length; ++row) {
    const T* first = x.data<T>() + row * length;
    int64_t* order = from + row * length;
    for (int64_t i = 0; i < length; ++i) order[i] = i;
    std::stable_sort(order, order + length, [&](int64_t a, int64_t b) {
      return descending ? first[a] > first[b] : first[a] < first[b];
    });
    for (int64_t i = 0; i < length; ++i) values[row * length + i] = first[order[i]];
  }
}

}  // namespace standin

#define STANDIN_KERNEL(...) PD_BUILD_PHI_KERNEL(__VA_ARGS__)
STANDIN_KERNEL(sum, STANDIN, ALL_LAYOUT, standin::SumKernel, float, double) {}
STANDIN_KERNEL(mean, STANDIN, ALL_LAYOUT, standin::MeanKernel, float, double) {}
STANDIN_KERNEL(softmax, STANDIN, ALL_LAYOUT, standin::SoftmaxKernel, float) {}
STANDIN_KERNEL(argsort, STANDIN, ALL_LAYOUT, standin::ArgsortKernel, float, int32_t) {
  kernel->OutputAt(1).SetDataType(phi::DataType::INT64);
}
