// SPDX-License-Identifier: Apache-2.0
// Integer tensors that name positions: read, checked against an axis and counted from its start.
#pragma once

#include "kernel.hpp"

#include <algorithm>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {

// The elements of `index`, a contiguous tensor of any integer dtype, as offsets from 0 to `length` - 1:
// its own memory if that holds them so, else scratch memory of the call. Negative positions count from
// the end.
tenon_status read_indices(tenon_ctx* ctx, const char* op, const tenon_tensor* index, int64_t length,
                            const int64_t** out, tenon_err* err);

// The same a block at a time, for those who read each position once.
inline constexpr int64_t kIndexBlock = 2048;

// f(const P* positions), for an index tensor of any integer dtype.
template <class F>
inline void with_index_type(const tenon_tensor* index, F&& f) {
  with_type(index->dtype, [&]<class P>(Type<P>) {
    if constexpr (std::is_integral_v<P>) f(data_of<P>(index));
  });
}

// Above int64's range, an unsigned position is as far outside as a negative one.
template <class P>
inline int64_t signed_index(P x) {
  const auto offset = static_cast<int64_t>(x);
  return std::is_unsigned_v<P> && offset < 0 ? std::numeric_limits<int64_t>::max() : offset;
}

// `count` positions as offsets, in their own memory or in `room`; NULL if any is outside.
template <class P>
inline const int64_t* checked_indices(const P* from, int64_t count, int64_t length, int64_t* buffer) {
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

// The error of an index tensor of which a position is outside.
tenon_status fail_indices(const char* op, const tenon_tensor* index, int64_t length, tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
