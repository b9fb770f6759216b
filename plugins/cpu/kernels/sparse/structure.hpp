// SPDX-License-Identifier: Apache-2.0
// The structure of a CSR matrix: every offset and every column is checked before anything is read by it, because both may
// come from a file, and may have been written since they were checked last.
#pragma once

#include "index/indices.hpp"

#include <atomic>

namespace tenon::cpu::TENON_CPU_ISA {

// Whether offsets ascend from 0 to `stored`, without a branch for each.
template <class P>
bool are_offsets(const P* from, int64_t count, int64_t stored) {
  if (count == 0) return true;
  bool falls = signed_index(from[0]) != 0 || signed_index(from[count - 1]) != stored;
  for (int64_t at = 1; at < count; ++at)
    falls |= signed_index(from[at]) < signed_index(from[at - 1]);
  return !falls;
}

// `indptr` as int64: in its own memory, or in scratch memory of the call. It ascends from 0 to `stored`.
inline tenon_status read_indptr(tenon_ctx* ctx, const char* op, const tenon_tensor* indptr,
                                int64_t stored, const int64_t** out, tenon_err* err) {
  tenon_status status = TENON_OK;
  const int64_t count = indptr->numel;
  with_index_type(indptr, [&]<class P>(const P* from) {
    const bool is_right = are_offsets(from, count, stored);
    int64_t least = 0, most = 0;  // the first is 0
    for (int64_t at = 0; !is_right && at < count; ++at, most = stored) {
      const int64_t offset = signed_index(from[at]);
      if (at == count - 1) least = std::max(least, stored);  // the last is `stored`
      if (offset < least || offset > most) {
        status = fail_format(err, TENON_INVALID_ARGUMENT,
                             "[%s] expected an indptr that ascends from 0 to the %lld stored "
                             "elements, got %lld at position %lld",
                             op, static_cast<long long>(stored), static_cast<long long>(offset),
                             static_cast<long long>(at));
        return;
      }
      least = offset;
    }
    if constexpr (std::is_same_v<P, int64_t>) {
      *out = from;
    } else {
      void* memory;
      status = host->scratch(ctx, static_cast<uint64_t>(count) * sizeof(int64_t), &memory, err);
      if (status != TENON_OK) return;
      auto* offsets = static_cast<int64_t*>(memory);
      for (int64_t at = 0; at < count; ++at) offsets[at] = static_cast<int64_t>(from[at]);
      *out = offsets;
    }
  });
  return status;
}

// Columns lie in [0, columns): none counts from the end.
template <class P>
tenon_status check_columns(const char* op, const P* from, int64_t count, int64_t columns,
                           tenon_err* err) {
  // Negative ones are larger than all others as unsigned numbers of their own size, which vector units compare.
  using Unsigned = std::make_unsigned_t<std::conditional_t<std::is_same_v<P, bool>, uint8_t, P>>;
  constexpr auto largest = static_cast<uint64_t>(std::numeric_limits<P>::max());
  const auto wanted = static_cast<uint64_t>(columns);
  const uint64_t bound = wanted > largest ? largest + 1 : wanted;
  std::atomic<bool> outside = false;
  parallel(count, 1, [&](int64_t begin, int64_t end) {
    Unsigned most = 0;
    for (int64_t i = begin; i < end; ++i) most = std::max(most, static_cast<Unsigned>(from[i]));
    if (end > begin && uint64_t{most} >= bound) outside = true;
  });
  if (!outside) return TENON_OK;
  int64_t at = 0;
  while (at < count - 1 && static_cast<uint64_t>(signed_index(from[at])) < wanted) ++at;
  return fail_format(err, TENON_OUT_OF_RANGE,
                     "[%s] expected columns from 0 to %lld, got %lld at position %lld", op,
                     static_cast<long long>(columns - 1),
                     static_cast<long long>(signed_index(from[at])), static_cast<long long>(at));
}

// f(const P* columns) of checked columns: of int32 and int64 in their own memory, of other dtypes as int64.
template <class F>
tenon_status with_columns(tenon_ctx* ctx, const char* op, const tenon_tensor* indices,
                          int64_t columns, tenon_err* err, F&& f) {
  tenon_status status = TENON_OK;
  with_index_type(indices, [&]<class P>(const P* from) {
    status = check_columns(op, from, indices->numel, columns, err);
    if (status != TENON_OK) return;
    if constexpr (std::is_same_v<P, int64_t> || std::is_same_v<P, int32_t>) {
      f(from);
    } else {
      void* memory;
      const auto count = static_cast<uint64_t>(indices->numel);
      status = host->scratch(ctx, count * sizeof(int64_t), &memory, err);
      if (status != TENON_OK) return;
      auto* wide = static_cast<int64_t*>(memory);
      for (int64_t i = 0; i < indices->numel; ++i) wide[i] = static_cast<int64_t>(from[i]);
      f(const_cast<const int64_t*>(wide));
    }
  });
  return status;
}

// The rows, divided into parts of about the same number of stored elements: f(first row, last row) of each.
template <class F>
void for_each_part(const int64_t* indptr, int64_t rows, int64_t work_of_element, F&& f) {
  constexpr int64_t kPartsOfAThread = 8;
  const int64_t stored = indptr[rows], work = (stored + rows) * work_of_element;
  if (work <= kSerialWork) return f(int64_t{0}, rows);
  const int64_t parts = std::min<int64_t>(rows, host->thread_count() * kPartsOfAThread);
  const auto begin_of = [&](int64_t part) {
    if (part == parts) return rows;
    const int64_t element = stored / parts * part + stored % parts * part / parts;
    return static_cast<int64_t>(std::lower_bound(indptr, indptr + rows, element) - indptr);
  };
  parallel(parts, work / parts, [&](int64_t first, int64_t last) {
    f(first == 0 ? 0 : begin_of(first), begin_of(last));
  });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
