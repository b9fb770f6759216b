// SPDX-License-Identifier: Apache-2.0
// What recurrent kernels share: a weight that is packed once for all steps, and parts of the batch for threads.
#pragma once

#include <algorithm>

#include "gemm/gemm.hpp"
#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The weight is packed once for all steps, in panels of this many columns that are padded with
// zeros; gemm_padded() reads them directly. A panel is as wide as the widest micro-kernel.
constexpr int64_t kNR = kVectorBytes == 64 ? 64 : 32;

// A thread gets at least this many items of the batch.
constexpr int64_t kMinRows = 8;

template <class T>
struct Panels {
  int64_t rows, columns;
  const T* data;

  // c = a * matrix, plus the rows of `addend`, for m dense rows. They may be those of c.
  void multiply(int64_t m, const T* a, T* c, Addend<T> addend) const {
    for (int64_t j = 0; j < columns; j += kNR) {
      gemm_padded<T>(m, std::min(kNR, columns - j), rows, a, rows, data + j * rows, kNR, c + j,
                     columns, {addend.data ? addend.data + j : nullptr, addend.row});
    }
  }
};

template <class T>
tenon_status lay_out(tenon_ctx* ctx, Matrix<T> from, int64_t rows, int64_t columns, Panels<T>* out,
                     tenon_err* err) {
  void* memory;
  const int64_t padded = (columns + kNR - 1) / kNR * kNR;
  const uint64_t bytes = static_cast<uint64_t>(std::max<int64_t>(rows * padded, 1)) * sizeof(T);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  T* to = static_cast<T*>(memory);
  *out = {rows, columns, to};
  for (int64_t j = 0; j < columns; j += kNR) {
    const int64_t width = std::min(kNR, columns - j);
    for (int64_t p = 0; p < rows; ++p) {
      for (int64_t q = 0; q < width; ++q) *to++ = from.data[p * from.row + (j + q) * from.column];
      for (int64_t q = width; q < kNR; ++q) *to++ = T(0);
    }
  }
  return TENON_OK;
}

// Calls f(first, count) for parts of the batch, in parallel if `work` is large enough.
template <class F>
void for_parts_of_batch(int64_t batch, int64_t work, F&& f) {
  const int64_t limit = work > kSerialWork ? host->thread_count() : 1;
  const int64_t parts = std::clamp<int64_t>(batch / kMinRows, 1, limit);
  parallel(parts, work / parts, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = batch * part / parts;
      f(first, batch * (part + 1) / parts - first);
    }
  });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
