// SPDX-License-Identifier: Apache-2.0
// The items of a batch of attention: sizes, addresses of their matrices and masks, and masking of
// scores.
#pragma once

#include "gemm/pack.hpp"
#include "kernel.hpp"

#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {

// The offset of an item in a tensor that may broadcast (stride 0). The last `inner` axes of
// `tensor` belong to an item; those before align with the axes of `query` before its last two.
inline int64_t item_offset(const tenon_tensor* tensor, int inner, const tenon_tensor* query,
                           int64_t item) {
  const int outer = query->ndim - 2, missing = outer - (tensor->ndim - inner);
  int64_t offset = 0;
  for (int axis = outer - 1; axis >= 0; --axis) {
    const int64_t index = item % query->shape[axis];
    item /= query->shape[axis];
    const int own = axis - missing;
    if (own >= 0 && tensor->shape[own] != 1) offset += index * tensor->strides[own];
  }
  return offset;
}

inline int64_t last_stride(const tenon_tensor* tensor, int from_end) {
  const int axis = tensor->ndim - from_end;
  return axis >= 0 && tensor->shape[axis] != 1 ? tensor->strides[axis] : 0;
}

template <class T>
Matrix<T> item_matrix(const tenon_tensor* tensor, const tenon_tensor* query, int64_t item) {
  const int inner = std::min<int>(tensor->ndim, 2);
  return {data_of<T>(tensor) + item_offset(tensor, inner, query, item), last_stride(tensor, 2),
          last_stride(tensor, 1)};
}

inline int64_t items_of(const tenon_tensor* query) {
  int64_t items = 1;
  for (int axis = 0; axis < query->ndim - 2; ++axis) items *= query->shape[axis];
  return items;
}

struct AttentionSizes {
  int64_t items, rows, keys, features, values;
  bool causal;
  AttentionSizes(const tenon_tensor* query, const tenon_tensor* value, bool causal_)
      : items(items_of(query)),
        rows(query->shape[query->ndim - 2]),
        keys(value->shape[value->ndim - 2]),
        features(query->shape[query->ndim - 1]),
        values(value->shape[value->ndim - 1]),
        causal(causal_) {}
  // The number of keys visible to any row before `end`.
  int64_t keys_until(int64_t end) const { return causal ? std::min(keys, end) : keys; }
};

// The mask of a block of scores: none, bool (true keeps a score), or numbers that are added.
template <class T>
struct MaskBlock {
  Matrix<uint8_t> keep{};  // uint8: compilers do not vectorise loops over bool
  Matrix<T> added{};
};

// Scales row `row` of a block of scores and applies the mask: adds numbers, or sets hidden scores
// to -inf.
template <class Format>
void scale_and_mask(typename Format::Accumulator* x, int64_t n, typename Format::Accumulator scale,
                    const MaskBlock<typename Format::Left>& mask, int64_t row) {
  using Sum = typename Format::Accumulator;
  constexpr Sum minus_infinity = -std::numeric_limits<Sum>::infinity();
  if (mask.added.data) {
    const auto* added = mask.added.data + row * mask.added.row;
    const int64_t step = mask.added.column;
    if constexpr (!std::is_same_v<typename Format::Left, Sum>) {
      constexpr int64_t block = 128;
      alignas(64) Sum wide[block];
      for (int64_t j = 0; j < n; j += block) {
        const int64_t count = std::min(block, n - j);
        widen_row(added + j * step, step, count, wide);
        for (int64_t q = 0; q < count; ++q) x[j + q] = x[j + q] * scale + wide[q];
      }
    } else if (step == 1) {
      for (int64_t j = 0; j < n; ++j) x[j] = x[j] * scale + added[j];
    } else {
      for (int64_t j = 0; j < n; ++j) x[j] = x[j] * scale + added[j * step];
    }
  } else if (mask.keep.data) {
    const uint8_t* keep = mask.keep.data + row * mask.keep.row;
    const int64_t step = mask.keep.column;
    if (step == 1) {
#pragma GCC ivdep  // bytes may alias anything
      for (int64_t j = 0; j < n; ++j) x[j] = keep[j] != 0 ? x[j] * scale : minus_infinity;
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) x[j] = keep[j * step] != 0 ? x[j] * scale : minus_infinity;
    }
  } else {
    for (int64_t j = 0; j < n; ++j) x[j] *= scale;
  }
}

template <class T>
MaskBlock<T> mask_of_item(const tenon_tensor* mask, const tenon_tensor* query, int64_t item) {
  if (!mask) return {};
  if (mask->dtype == TENON_DTYPE_BOOL) return {item_matrix<uint8_t>(mask, query, item), {}};
  return {{}, item_matrix<T>(mask, query, item)};
}

template <class T>
MaskBlock<T> mask_at(MaskBlock<T> mask, int64_t row, int64_t column) {
  if (mask.keep.data) mask.keep.data += row * mask.keep.row + column * mask.keep.column;
  if (mask.added.data) mask.added.data += row * mask.added.row + column * mask.added.column;
  return mask;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
