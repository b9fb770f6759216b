// SPDX-License-Identifier: Apache-2.0
// searchsorted: one binary search per element. NaN is greater than every number.
#include "kernel.hpp"

#include <tenon/signatures/scan_sort.h>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

// How many elements at the start of a range, all of them before the others, `before` is true of. Each
// step halves what is left without a jump, which for random values would be mispredicted half the time.
template <class T, class Before>
int64_t count_before(const T* first, int64_t n, Before before) {
  const T* base = first;
  while (n > 1) {
    const int64_t half = n / 2;
    base += half & -static_cast<int64_t>(before(base[half - 1]));
    n -= half;
  }
  return base - first + (n == 1 && before(*base));
}

template <class T>
int64_t place_of(const T* first, int64_t count, T value, bool right) {
  if (is_nan(value))
    return right ? count : count_before(first, count, [](T x) { return !is_nan(x); });
  return right ? count_before(first, count, [=](T x) { return x <= value; })
               : count_before(first, count, [=](T x) { return x < value; });
}

tenon_status searchsorted(tenon_ctx* ctx, const tenon_tensor* sorted, const tenon_tensor* values,
                          int32_t right, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(sorted->dtype))
    return run_as_float32(searchsorted, ctx, err, sorted, values, right, out);
  with_type(sorted->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      const T* first = data_of<T>(sorted);
      const int64_t count = sorted->numel;
      parallel(values->numel, 32, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T value = data_of<T>(values)[i];
          data_of<int64_t>(out)[i] = place_of(first, count, value, right != 0);
        }
      });
    }
  });
  return TENON_OK;
}
TENON_BOX_searchsorted(searchsorted_boxed, searchsorted);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_searchsorted(searchsorted, nullptr, kReals, 0, 0)};

}  // namespace

KernelList search_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
