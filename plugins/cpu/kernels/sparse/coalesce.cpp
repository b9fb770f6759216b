// SPDX-License-Identifier: Apache-2.0
// Where the stored elements of a COO tensor go if equal indices become one, and whether the indices of a CSR matrix ascend.
// The indices of an element and its position are packed into one word where they fit, so that sorted words say all and an
// unstable sort suffices.
#include "kernel.hpp"
#include "sort/vector_sort.hpp"
#include "sparse/structure.hpp"

#include <tenon/signatures/sparse.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr const char* kOp = "coo_coalesce";
constexpr int kMaxAxes = 64;

int bits_of(int64_t count) {
  return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(count, 1) - 1));
}

// Indices [axes, stored] of P in their own memory.
template <class P>
struct Indices {
  const P* from;
  int64_t axes, stored;
  const int64_t* shape;
  const P* along(int64_t axis) const { return from + axis * stored; }

  tenon_status check(tenon_err* err) const {
    for (int64_t axis = 0; axis < axes; ++axis) {
      const P* indices = along(axis);
      const auto is_outside = [size = static_cast<uint64_t>(shape[axis])](P index) {
        return static_cast<uint64_t>(signed_index(index)) >= size;
      };
      bool outside = false;
      for (int64_t k = 0; k < stored; ++k) outside |= is_outside(indices[k]);
      if (!outside) continue;
      const int64_t at = std::find_if(indices, indices + stored, is_outside) - indices;
      return fail_format(err, TENON_OUT_OF_RANGE,
                         "coo: expected indices from 0 to %lld along axis %lld, got %lld at "
                         "position %lld",
                         static_cast<long long>(shape[axis] - 1), static_cast<long long>(axis),
                         static_cast<long long>(signed_index(indices[at])),
                         static_cast<long long>(at));
    }
    return TENON_OK;
  }
};

// Elements in the order of their indices, and behind these of their positions: in words.
template <class P>
class PackedOrder {
 public:
  static bool fits(const Indices<P>& indices) {
    int bits = bits_of(indices.stored);
    for (int64_t axis = 0; axis < indices.axes; ++axis) bits += bits_of(indices.shape[axis]);
    return bits <= 63;
  }
  static int64_t words(int64_t stored) { return 2 * stored + kSortMargin; }

  PackedOrder(const Indices<P>& indices, int64_t* memory)
      : words_(memory), bits_(bits_of(indices.stored)) {
    const int64_t stored = indices.stored;
    int shift = bits_;
    for (int64_t axis = indices.axes - 1; axis >= 0; --axis) {
      shift_[axis] = shift;
      mask_[axis] = (int64_t{1} << bits_of(indices.shape[axis])) - 1;
      const P* along = indices.along(axis);
      const bool is_last = axis == indices.axes - 1;
      const int64_t most = indices.shape[axis] - 1;
      int64_t signs = 0;  // negative if an index is, or what lies above the largest one
      for (int64_t k = 0; k < stored; ++k) {
        const auto index = static_cast<int64_t>(along[k]);
        signs |= index | (most - index);
        words_[k] = index << shift | (is_last ? k : words_[k]);
      }
      is_inside_ &= signs >= 0;
      shift += bits_of(indices.shape[axis]);
    }
    bool falls = false;
    for (int64_t k = 1; k < stored; ++k) falls |= words_[k] < words_[k - 1];
    if (falls && is_inside_) VectorSort<int64_t>::sort(words_, words_ + stored, stored, bits_);
  }

  // Whether all indices were those of the shape, without which the order means nothing.
  bool is_inside() const { return is_inside_; }
  int64_t position(int64_t i) const { return words_[i] & ((int64_t{1} << bits_) - 1); }
  bool is_new(int64_t i) const { return words_[i] >> bits_ != words_[i - 1] >> bits_; }
  int64_t index(int64_t i, int64_t axis) const { return words_[i] >> shift_[axis] & mask_[axis]; }

 private:
  int64_t* words_;
  int bits_, shift_[kMaxAxes];
  int64_t mask_[kMaxAxes];
  bool is_inside_ = true;
};

// The same by a sort of positions, of indices that are too large together and were checked.
template <class P>
class WideOrder {
 public:
  static int64_t words(int64_t stored) { return stored; }

  WideOrder(const Indices<P>& indices, int64_t* memory) : indices_(indices), order_(memory) {
    for (int64_t k = 0; k < indices.stored; ++k) order_[k] = k;
    std::sort(order_, order_ + indices.stored, [this](int64_t a, int64_t b) {
      const int64_t axis = first_difference(a, b);
      return axis < indices_.axes ? indices_.along(axis)[a] < indices_.along(axis)[b] : a < b;
    });
  }

  bool is_inside() const { return true; }
  int64_t position(int64_t i) const { return order_[i]; }
  bool is_new(int64_t i) const {
    return first_difference(order_[i], order_[i - 1]) < indices_.axes;
  }
  int64_t index(int64_t i, int64_t axis) const {
    return static_cast<int64_t>(indices_.along(axis)[order_[i]]);
  }

 private:
  int64_t first_difference(int64_t a, int64_t b) const {
    int64_t axis = 0;
    while (axis < indices_.axes && indices_.along(axis)[a] == indices_.along(axis)[b]) ++axis;
    return axis;
  }

  Indices<P> indices_;
  int64_t* order_;
};

template <class Order, class P>
tenon_status write(tenon_ctx* ctx, const Indices<P>& indices, tenon_err* err) {
  const int64_t stored = indices.stored;
  void* memory;
  tenon_status status = host->scratch(
      ctx, static_cast<uint64_t>(Order::words(stored)) * sizeof(int64_t), &memory, err);
  if (status != TENON_OK) return status;
  const Order order(indices, static_cast<int64_t*>(memory));
  if (!order.is_inside()) return indices.check(err);
  int64_t count = stored > 0 ? 1 : 0;
  for (int64_t i = 1; i < stored; ++i) count += order.is_new(i);
  tenon_tensor *distinct, *group;
  const int64_t shape[] = {indices.axes, count};
  status = host->output_alloc(ctx, 0, TENON_DTYPE_I64, 2, shape, &distinct, err);
  if (status == TENON_OK)
    status = host->output_alloc(ctx, 1, TENON_DTYPE_I64, 1, &stored, &group, err);
  if (status != TENON_OK) return status;
  auto *to = data_of<int64_t>(distinct), *group_of = data_of<int64_t>(group);
  constexpr int64_t kAhead = 16;  // elements between a request and its use
  int64_t last = -1;
  for (int64_t i = 0; i < stored; ++i) {
    if (i + kAhead < stored) __builtin_prefetch(group_of + order.position(i + kAhead), 1);
    last += i == 0 || order.is_new(i);
    for (int64_t axis = 0; axis < indices.axes; ++axis)
      to[axis * count + last] = order.index(i, axis);
    group_of[order.position(i)] = last;
  }
  return TENON_OK;
}

tenon_status coo_coalesce(tenon_ctx* ctx, const tenon_tensor* indices, const int64_t* shape,
                          uint64_t shape_count, tenon_err* err) {
  if (indices->ndim != 2 || indices->shape[0] != static_cast<int64_t>(shape_count) ||
      shape_count < 1 || shape_count > kMaxAxes)
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[%s] expected indices [axes, stored elements] and a size for each of 1 to "
                       "%d axes, got indices of %d axes and %llu sizes",
                       kOp, kMaxAxes, indices->ndim, static_cast<unsigned long long>(shape_count));
  if (const int64_t* end = shape + shape_count;
      std::any_of(shape, end, [](int64_t n) { return n < 0; }))
    return fail_format(err, TENON_INVALID_ARGUMENT, "[%s] expected sizes of at least 0, got %lld",
                       kOp, static_cast<long long>(*std::min_element(shape, end)));
  tenon_status status = TENON_OK;
  with_index_type(indices, [&]<class P>(const P* from) {
    const Indices<P> all{from, indices->shape[0], indices->shape[1], shape};
    if (PackedOrder<P>::fits(all)) {
      status = write<PackedOrder<P>>(ctx, all, err);
      return;
    }
    status = all.check(err);
    if (status == TENON_OK) status = write<WideOrder<P>>(ctx, all, err);
  });
  return status;
}
TENON_BOX_coo_coalesce(coo_coalesce_boxed, coo_coalesce);

tenon_status csr_is_sorted(tenon_ctx* ctx, const tenon_tensor* indptr, const tenon_tensor* indices,
                           tenon_tensor* out, tenon_err* err) {
  const int64_t* offsets;
  const tenon_status status =
      read_indptr(ctx, "csr_is_sorted", indptr, indices->numel, &offsets, err);
  if (status != TENON_OK) return status;
  std::atomic<bool> is_sorted = true;
  with_index_type(indices, [&]<class P>(const P* columns) {
    for_each_part(offsets, indptr->numel - 1, 1, [&](int64_t first, int64_t last) {
      bool falls = false;
      for (int64_t row = first; row < last; ++row) {
        for (int64_t k = offsets[row] + 1; k < offsets[row + 1]; ++k)
          falls |= columns[k] <= columns[k - 1];
      }
      if (falls) is_sorted = false;
    });
  });
  *data_of<bool>(out) = is_sorted;
  return TENON_OK;
}
TENON_BOX_csr_is_sorted(csr_is_sorted_boxed, csr_is_sorted);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_coo_coalesce(coo_coalesce, nullptr, kIntegers, 0, 0),
    TENON_KERNEL_csr_is_sorted(csr_is_sorted, nullptr, kIntegers, 0, 0)};

}  // namespace

KernelList coalesce_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
