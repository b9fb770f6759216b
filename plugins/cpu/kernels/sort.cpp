// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis, stable, with NaN last in ascending order and first in descending, as NumPy has
// it; topk by partial selection.
#include "kernel.hpp"

#include <cmath>
#include <vector>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

// Ascending, NaN greatest.
template <class T>
bool precedes(T a, T b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

template <class T>
struct Entry {
  T value;
  int64_t place;
};

// Equal values keep their order either way.
template <class T>
bool before(const Entry<T>& a, const Entry<T>& b, bool descending) {
  if (descending ? precedes(b.value, a.value) : precedes(a.value, b.value)) return true;
  if (descending ? precedes(a.value, b.value) : precedes(b.value, a.value)) return false;
  return a.place < b.place;
}

// The first `keep` entries of every lane, in order.
template <class T>
void order_lanes(const tenon_tensor* x, int64_t axis, int64_t keep, bool descending, tenon_tensor* values,
                 tenon_tensor* indices) {
  const AxisView view(x, axis);
  const int64_t lanes = view.outer * view.inner;
  const T* from = data_of<T>(x);
  T* to = data_of<T>(values);
  int64_t* places = data_of<int64_t>(indices);
  const auto less = [descending](const Entry<T>& a, const Entry<T>& b) { return before(a, b, descending); };
  parallel(lanes, view.length * 16, [&](int64_t begin, int64_t end) {
    std::vector<Entry<T>> lane(static_cast<size_t>(view.length));
    for (int64_t n = begin; n < end; ++n) {
      const int64_t o = n / view.inner, i = n % view.inner;
      for (int64_t k = 0; k < view.length; ++k)
        lane[static_cast<size_t>(k)] = {from[(o * view.length + k) * view.inner + i], k};
      if (keep < view.length)
        std::partial_sort(lane.begin(), lane.begin() + keep, lane.end(), less);
      else
        std::sort(lane.begin(), lane.end(), less);
      for (int64_t k = 0; k < keep; ++k) {
        to[(o * keep + k) * view.inner + i] = lane[static_cast<size_t>(k)].value;
        places[(o * keep + k) * view.inner + i] = lane[static_cast<size_t>(k)].place;
      }
    }
  });
}

tenon_status sort_with_indices(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, int32_t descending,
                               tenon_tensor* values, tenon_tensor* indices, tenon_err* err) {
  if (is_reduced_float(x->dtype))
    return run_as_float32(sort_with_indices, ctx, err, x, axis, descending, values, indices);
  if (x->numel == 0) return TENON_OK;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>)
      order_lanes<T>(x, axis, AxisView(x, axis).length, descending, values, indices);
  });
  return TENON_OK;
}
TENON_BOX_sort_with_indices(sort_with_indices_boxed, sort_with_indices)

tenon_status topk(tenon_ctx* ctx, const tenon_tensor* x, int64_t count, int64_t axis, int32_t largest,
                  tenon_tensor* values, tenon_tensor* indices, tenon_err* err) {
  if (is_reduced_float(x->dtype)) return run_as_float32(topk, ctx, err, x, count, axis, largest, values, indices);
  if (values->numel == 0) return TENON_OK;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) order_lanes<T>(x, axis, count, largest, values, indices);
  });
  return TENON_OK;
}
TENON_BOX_topk(topk_boxed, topk)

tenon_status searchsorted(tenon_ctx* ctx, const tenon_tensor* sorted, const tenon_tensor* values, int32_t right,
                          tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(sorted->dtype)) return run_as_float32(searchsorted, ctx, err, sorted, values, right, out);
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
TENON_BOX_searchsorted(searchsorted_boxed, searchsorted)

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_sort_with_indices(sort_with_indices, nullptr, kReals | kBool, 0, 0),
    TENON_KERNEL_topk(topk, nullptr, kReals | kBool, 0, 0),
    TENON_KERNEL_searchsorted(searchsorted, nullptr, kReals, 0, 0)};

}  // namespace

KernelList sort_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
