// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis, stable, with NaN last in ascending order and first in descending, as NumPy has
// it: by the digits of keys (radix sort, Knuth, The Art of Computer Programming 3, 5.2.5); topk by partial
// selection.
#include "kernel.hpp"

#include <bit>
#include <utility>
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

// Unsigned integers in the order of the values; equal values, and all NaN, have one key.
template <class T>
uint64_t key_of(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr Bits sign = Bits{1} << (sizeof(T) * 8 - 1);
    if (x != x) return ~Bits{0};
    const Bits bits = std::bit_cast<Bits>(x == T(0) ? T(0) : x);
    return bits & sign ? static_cast<Bits>(~bits) : bits | sign;
  } else if constexpr (std::is_signed_v<T>) {
    using Bits = std::make_unsigned_t<T>;
    return static_cast<Bits>(static_cast<Bits>(x) ^ (Bits{1} << (sizeof(T) * 8 - 1)));
  } else {
    return static_cast<uint64_t>(x);
  }
}

// A key and the place that it came from, which decides between equal keys: in one word if both fit.
template <int kKeyBytes>
struct Entry {
  uint64_t key, place_;
  Entry() = default;
  Entry(uint64_t k, int64_t place) : key(k), place_(static_cast<uint64_t>(place)) {}
  int64_t place() const { return static_cast<int64_t>(place_); }
  uint8_t digit(int i) const { return static_cast<uint8_t>(key >> (8 * i)); }
  bool operator<(const Entry& other) const {
    return key != other.key ? key < other.key : place_ < other.place_;
  }
};
template <>
struct Entry<4> {
  uint64_t word;
  Entry() = default;
  Entry(uint64_t k, int64_t place) : word(k << 32 | static_cast<uint64_t>(place)) {}
  int64_t place() const { return static_cast<int64_t>(word & 0xffffffffu); }
  uint8_t digit(int i) const { return static_cast<uint8_t>(word >> (32 + 8 * i)); }
  bool operator<(const Entry& other) const { return word < other.word; }
};

// Below, sorting by comparison takes less than counting digits.
constexpr int64_t kRadixLength = 256;

// By digits of the key, least first; digits that all entries share are passed over. Entries come in the
// order of their places, and keep it where keys are equal. `other` has room for as many.
template <int kKeyBytes>
void sort_entries(Entry<kKeyBytes>* entries, Entry<kKeyBytes>* other, int64_t n) {
  if (n < kRadixLength) {
    std::sort(entries, entries + n);
    return;
  }
  int64_t counts[kKeyBytes][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kKeyBytes; ++d) ++counts[d][entries[i].digit(d)];
  Entry<kKeyBytes>*from = entries, *to = other;
  for (int d = 0; d < kKeyBytes; ++d) {
    int64_t* const start = counts[d];
    if (start[from[0].digit(d)] == n) continue;
    for (int64_t digit = 0, at = 0; digit < 256; ++digit) at += std::exchange(start[digit], at);
    for (int64_t i = 0; i < n; ++i) to[start[from[i].digit(d)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::copy_n(from, n, entries);
}

// The first `keep` entries of every lane, in order.
template <int kKeyBytes, class T>
void order_lanes(const tenon_tensor* x, int64_t axis, int64_t keep, bool descending, tenon_tensor* values,
                 tenon_tensor* indices) {
  const AxisView view(x, axis);
  const int64_t lanes = view.outer * view.inner, n = view.length;
  T* to = data_of<T>(values);
  int64_t* places = data_of<int64_t>(indices);
  constexpr uint64_t all = kKeyBytes == 4 ? 0xffffffffu : ~uint64_t{0};
  const uint64_t flip = descending ? all : 0;
  parallel(lanes, n * 16, [&](int64_t begin, int64_t end) {
    std::vector<Entry<kKeyBytes>> room(static_cast<size_t>(2 * n));
    Entry<kKeyBytes>* lane = room.data();
    for (int64_t l = begin; l < end; ++l) {
      const int64_t o = l / view.inner, i = l % view.inner;
      const T* from = data_of<T>(x) + o * n * view.inner + i;
      for (int64_t k = 0; k < n; ++k) lane[k] = {key_of(from[k * view.inner]) ^ flip, k};
      if (keep < n)
        std::partial_sort(lane, lane + keep, lane + n);
      else
        sort_entries(lane, lane + n, n);
      for (int64_t k = 0; k < keep; ++k) {
        const int64_t place = lane[k].place(), at = (o * keep + k) * view.inner + i;
        to[at] = from[place * view.inner];
        places[at] = place;
      }
    }
  });
}

template <class T>
void order(const tenon_tensor* x, int64_t axis, int64_t keep, bool descending, tenon_tensor* values,
           tenon_tensor* indices) {
  if (sizeof(T) <= 4 && AxisView(x, axis).length <= int64_t{1} << 32)
    order_lanes<4, T>(x, axis, keep, descending, values, indices);
  else
    order_lanes<8, T>(x, axis, keep, descending, values, indices);
}

tenon_status sort_with_indices(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, int32_t descending,
                               tenon_tensor* values, tenon_tensor* indices, tenon_err* err) {
  if (is_reduced_float(x->dtype))
    return run_as_float32(sort_with_indices, ctx, err, x, axis, descending, values, indices);
  if (x->numel == 0) return TENON_OK;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>)
      order<T>(x, axis, AxisView(x, axis).length, descending, values, indices);
  });
  return TENON_OK;
}
TENON_BOX_sort_with_indices(sort_with_indices_boxed, sort_with_indices)

tenon_status topk(tenon_ctx* ctx, const tenon_tensor* x, int64_t count, int64_t axis, int32_t largest,
                  tenon_tensor* values, tenon_tensor* indices, tenon_err* err) {
  if (is_reduced_float(x->dtype)) return run_as_float32(topk, ctx, err, x, count, axis, largest, values, indices);
  if (values->numel == 0) return TENON_OK;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) order<T>(x, axis, count, largest, values, indices);
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
