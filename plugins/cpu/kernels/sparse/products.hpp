// SPDX-License-Identifier: Apache-2.0
// What products of two CSR matrices have in common: they go row after row (Gustavson, 1978).
#pragma once

#include "kernel.hpp"
#include "parallel_scratch.hpp"
#include "sparse/structure.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// The structure of a matrix whose offsets and columns were checked.
template <class I>
struct Structure {
  const int64_t* offsets;
  const I* columns;
};

// f(Structure) of a matrix of `columns` columns.
template <class F>
tenon_status with_structure(tenon_ctx* ctx, const char* op, const tenon_tensor* indptr,
                            const tenon_tensor* indices, int64_t columns, tenon_err* err, F&& f) {
  const int64_t* offsets;
  tenon_status status = read_indptr(ctx, op, indptr, indices->numel, &offsets, err);
  if (status != TENON_OK) return status;
  tenon_status inner = TENON_OK;
  status = with_columns(ctx, op, indices, columns, err, [&]<class I>(const I* from) {
    inner = f(Structure<I>{offsets, from});
  });
  return status != TENON_OK ? status : inner;
}

// f(column, k, l) for the products of a row: of the elements k of x and l of y.
template <class X, class Y, class F>
void for_products(const Structure<X>& x, const Structure<Y>& y, int64_t row, F&& f) {
  const int64_t last = x.offsets[row + 1];
  for (int64_t k = x.offsets[row]; k < last; ++k) {
    const auto through = static_cast<int64_t>(x.columns[k]);
    const int64_t end = y.offsets[through + 1];
    for (int64_t l = y.offsets[through]; l < end; ++l) f(static_cast<int64_t>(y.columns[l]), k, l);
  }
}

// Rows that one thread takes at a time: not so few that filling the scratch memory would matter.
inline int64_t parts_of(int64_t rows) {
  constexpr int64_t kMinRows = 256, kPartsOfAThread = 8;
  return std::min((rows + kMinRows - 1) / kMinRows, host->thread_count() * kPartsOfAThread);
}

// f(first row, last row, scratch memory), with `work` units for each row.
template <class F>
tenon_status for_rows(tenon_ctx* ctx, int64_t rows, int64_t work, int64_t bytes, tenon_err* err,
                      F&& f) {
  const int64_t parts = parts_of(rows);
  if (parts == 0) return TENON_OK;
  return parallel_for_with_scratch(ctx, parts, work * (rows / parts), bytes, err,
                                   [&](int64_t part, void* memory) {
                                     f(rows * part / parts, rows * (part + 1) / parts, memory);
                                   });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
