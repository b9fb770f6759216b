// SPDX-License-Identifier: Apache-2.0
// Reads index tensors: checks the indices against the length of an axis and makes negative ones
// count from the end.
#pragma once

#include "kernel.hpp"

#include <tenon/dtypes.h>

#include <algorithm>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {

// Returns the elements of `index`, a contiguous tensor of any integer dtype, as offsets in [0,
// length): in its own memory if that already holds them, otherwise in scratch memory of the call.
// Negative indices count from the end.
tenon_status read_indices(tenon_ctx* ctx, const char* op, const tenon_tensor* index, int64_t length,
                          const int64_t** out, tenon_err* err);

// The dtype as which kernels that only move elements see one that with_type does not know: those that are stored only
// have one byte.
inline int moved_as(int dtype) { return dtype > TENON_DTYPE_C128 ? int{TENON_DTYPE_U8} : dtype; }
static_assert(
    dtype_mask([](const DtypeRow& row) {
      return row.type_class == DtypeClass::kStorage &&
             (row.size != 1 || row.id <= TENON_DTYPE_C128);
    }) == 0,
    "expected dtypes that are stored only to have one byte, and numbers above the others");

// The block size of kernels that check the indices block by block, as they use them.
inline constexpr int64_t kIndexBlock = 2048;

// Calls f(const P* indices) with the element type of the index tensor.
template <class F>
inline void with_index_type(const tenon_tensor* index, F&& f) {
  with_type(index->dtype, [&]<class P>(Type<P>) {
    if constexpr (std::is_integral_v<P>) f(data_of<P>(index));
  });
}

// Converts an index to int64; an unsigned index above the range of int64 becomes its maximum, which
// is out of range for every axis.
template <class P>
inline int64_t signed_index(P x) {
  const auto offset = static_cast<int64_t>(x);
  return std::is_unsigned_v<P> && offset < 0 ? std::numeric_limits<int64_t>::max() : offset;
}

// Returns `count` indices as offsets, in their own memory or in `buffer`; NULL if any is out of
// range.
template <class P>
inline const int64_t* checked_indices(const P* from, int64_t count, int64_t length,
                                      int64_t* buffer) {
  int64_t min_index = 0, max_index = -1;
  for (int64_t i = 0; i < count; ++i) {
    min_index = std::min(min_index, signed_index(from[i]));
    max_index = std::max(max_index, signed_index(from[i]));
  }
  if (min_index < -length || max_index >= length) return nullptr;
  if constexpr (std::is_same_v<P, int64_t>) {
    if (min_index >= 0) return from;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t offset = signed_index(from[i]);
    buffer[i] = offset < 0 ? offset + length : offset;
  }
  return buffer;
}

// The part of `parts`, one for each thread, that does everything at `index`, in order: of repeated indices the last value
// stays, and sums have the bits that one thread gives them.
inline int64_t part_of(int64_t index, int64_t parts) {
  const uint64_t mixed = static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15u >> 32;
  return static_cast<int64_t>(mixed * static_cast<uint64_t>(parts) >> 32);
}

// Reports the first index that is out of range.
tenon_status fail_indices(const char* op, const tenon_tensor* index, int64_t length,
                          tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
