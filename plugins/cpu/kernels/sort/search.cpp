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

template <class T>
bool precedes(T a, T b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

tenon_status searchsorted(tenon_ctx* ctx, const tenon_tensor* sorted, const tenon_tensor* values,
                          int32_t right, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(sorted->dtype))
    return run_as_float32(searchsorted, ctx, err, sorted, values, right, out);
  with_type(sorted->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      const T* first = data_of<T>(sorted);
      const T* last = first + sorted->numel;
      parallel(values->numel, 32, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T value = data_of<T>(values)[i];
          const T* place = right ? std::upper_bound(first, last, value, precedes<T>)
                                 : std::lower_bound(first, last, value, precedes<T>);
          data_of<int64_t>(out)[i] = place - first;
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
