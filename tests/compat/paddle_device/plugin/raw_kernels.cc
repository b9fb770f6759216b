// SPDX-License-Identifier: Apache-2.0
// Kernels under their older names, with the older parameters.
#include <paddle/phi/capi/all.h>

#include <algorithm>

namespace standin {

// What all of them do: start, combine, divide by the number of elements of each result.
template <typename T, typename Combine>
void Reduce(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray& axes_array,
            bool keep_dim, bool reduce_all, T start, bool is_mean, phi::DenseTensor* out,
            Combine combine) {
  const auto dims = x.dims(), axes = axes_array.GetData();
  PD_CHECK(reduce_all == (axes.size() == dims.size()), "reduce_all is ", reduce_all);
  PD_CHECK(out->dims().size() == (keep_dim ? dims.size() : dims.size() - axes.size()));
  T* to = context.Alloc<T>(out);
  std::fill(to, to + out->numel(), start);
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t at = 0, step = 1, rest = i;
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) {
      if (std::count(axes.begin(), axes.end(), static_cast<int64_t>(axis))) continue;
      at += rest % dims[axis] * step;
      step *= dims[axis];
    }
    to[at] = combine(to[at], x.data<T>()[i]);
  }
  for (int64_t i = 0; is_mean && i < out->numel(); ++i) to[i] = to[i] * out->numel() / x.numel();
}

template <typename T>
void SumRawKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray& axes,
                  bool keep_dim, bool reduce_all, phi::DataType dtype, phi::DenseTensor* out) {
  PD_CHECK(dtype == out->dtype());
  Reduce<T>(context, x, axes, keep_dim, reduce_all, T(0), false, out,
            [](T a, T b) { return a + b; });
}
template <typename T>
void MeanRawKernel(const phi::Context& context, const phi::DenseTensor& x,
                   const phi::IntArray& axes, bool keep_dim, bool reduce_all,
                   phi::DenseTensor* out) {
  Reduce<T>(context, x, axes, keep_dim, reduce_all, T(0), true, out,
            [](T a, T b) { return a + b; });
}
template <typename T>
void MaxRawKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray& axes,
                  bool keep_dim, bool reduce_all, phi::DenseTensor* out) {
  Reduce<T>(context, x, axes, keep_dim, reduce_all, std::numeric_limits<T>::lowest(), false, out,
            [](T a, T b) { return std::max(a, b); });
}
template <typename T>
void MinRawKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::IntArray& axes,
                  bool keep_dim, bool reduce_all, phi::DenseTensor* out) {
  Reduce<T>(context, x, axes, keep_dim, reduce_all, std::numeric_limits<T>::max(), false, out,
            [](T a, T b) { return std::min(a, b); });
}
template <typename T>
void FillKernel(const phi::Context& context, const phi::Scalar& value, phi::DenseTensor* out) {
  T* to = context.Alloc<T>(out);
  std::fill(to, to + out->numel(), value.to<T>());
}

}  // namespace standin

#define STANDIN_KERNEL(...) PD_BUILD_PHI_KERNEL(__VA_ARGS__)
STANDIN_KERNEL(sum_raw, STANDIN, ALL_LAYOUT, standin::SumRawKernel, float, double) {}
STANDIN_KERNEL(mean_raw, STANDIN, ALL_LAYOUT, standin::MeanRawKernel, float, double) {}
STANDIN_KERNEL(max_raw, STANDIN, ALL_LAYOUT, standin::MaxRawKernel, int32_t, int64_t) {}
STANDIN_KERNEL(min_raw, STANDIN, ALL_LAYOUT, standin::MinRawKernel, int32_t, int64_t) {}
STANDIN_KERNEL(fill, STANDIN, ALL_LAYOUT, standin::FillKernel, float, int64_t) {}
