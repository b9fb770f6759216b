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
tenon_status read_positions(tenon_ctx* ctx, const char* op, const tenon_tensor* index, int64_t length,
                            const int64_t** out, tenon_err* err);

// The same a block at a time, for those who read each position once.
inline constexpr int64_t kPositionBlock = 2048;

// f(const P* positions), for an index tensor of any integer dtype.
template <class F>
inline void with_index_type(const tenon_tensor* index, F&& f) {
  with_type(index->dtype, [&]<class P>(Type<P>) {
    if constexpr (std::is_integral_v<P>) f(data_of<P>(index));
  });
}

// Above int64's range, an unsigned position is as far outside as a negative one.
template <class P>
inline int64_t position_in(P x) {
  const auto position = static_cast<int64_t>(x);
  return std::is_unsigned_v<P> && position < 0 ? std::numeric_limits<int64_t>::max() : position;
}

// `count` positions as offsets, in their own memory or in `room`; NULL if any is outside.
template <class P>
inline const int64_t* checked_positions(const P* from, int64_t count, int64_t length, int64_t* room) {
  int64_t least = 0, most = -1;
  for (int64_t i = 0; i < count; ++i) {
    least = std::min(least, position_in(from[i]));
    most = std::max(most, position_in(from[i]));
  }
  if (least < -length || most >= length) return nullptr;
  if constexpr (std::is_same_v<P, int64_t>) {
    if (least >= 0) return from;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = position_in(from[i]);
    room[i] = position < 0 ? position + length : position;
  }
  return room;
}

// The error of an index tensor of which a position is outside.
tenon_status fail_positions(const char* op, const tenon_tensor* index, int64_t length, tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
