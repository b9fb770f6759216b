// SPDX-License-Identifier: Apache-2.0
// Packs blocks of the matrices of attention for the micro-kernels of GEMM, and multiplies them,
// leaving out what a causal mask hides.
#pragma once

#include "gemm/amx_formats.hpp"
#include "gemm/blocked.hpp"
#include "gemm/low_precision.hpp"
#include "gemm/small_m.hpp"
#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Dtypes that the kernels read directly; others are converted to float32 first.
inline constexpr uint64_t kAttentionDirect =
    dtype_bit(TENON_DTYPE_F16) | dtype_bit(TENON_DTYPE_BF16) | dtype_bit(TENON_DTYPE_F32) |
    dtype_bit(TENON_DTYPE_F64);
inline constexpr uint64_t kAttentionConverted =
    dtype_bit(TENON_DTYPE_F8E4M3) | dtype_bit(TENON_DTYPE_F8E5M2);

// Calls f with the GEMM format of one of kAttentionDirect.
template <class F>
tenon_status with_attention_format(int dtype, F&& f) {
  if (dtype == TENON_DTYPE_F64) return f(Type<Plain<double>>{});
  if (dtype == TENON_DTYPE_F16) return f(Type<Widened<Float16>>{});
#ifdef __AVX512F__
  if (dtype == TENON_DTYPE_BF16 && has_amx_bf16()) return f(Type<Bfloat16Tiles>{});
  if (dtype == TENON_DTYPE_BF16 && has_avx512_bf16()) return f(Type<Bfloat16Pairs>{});
#endif
  if (dtype == TENON_DTYPE_BF16) return f(Type<Widened<BFloat16>>{});
  return f(Type<Plain<float>>{});
}

// The causal mask of a block of scores: row r sees columns up to r + shift.
struct CausalMask {
  int64_t shift;
  static constexpr int64_t kAll = INT64_MAX / 2;

  int64_t columns_of_row(int64_t row, int64_t columns) const {
    return std::clamp<int64_t>(row + shift + 1, 0, columns);
  }
  int64_t first_row_of(int64_t column) const { return std::max<int64_t>(0, column - shift); }
};

// Divides one allocation of scratch memory into parts aligned to cache lines. Without memory it
// only counts the bytes.
class ScratchLayout {
 public:
  explicit ScratchLayout(void* memory) : memory_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(int64_t count) {
    T* part = memory_ ? reinterpret_cast<T*>(memory_ + bytes_) : nullptr;
    bytes_ += rounded_up<64>(count * static_cast<int64_t>(sizeof(T)));
    return part;
  }
  int64_t bytes() const { return bytes_; }

 private:
  char* memory_;
  int64_t bytes_ = 0;
};

// Packed layouts of a block for a GEMM format. Left operands are rows, whose elements are
// broadcast; right operands are rows of panels.
template <class Format>
struct Layout {
  using Source = typename Format::Left;
  using Packed = typename Format::Packed;
  using Sum = typename Format::Accumulator;
  static constexpr int64_t kDepth = Format::kDepth, kColumns = kNR<Packed>;

  static int64_t depth_of(int64_t k) {
    return rounded_up<kStep<Format>>((k + kDepth - 1) / kDepth);
  }
  // Elements from row to row. Not a power of two: rows go to different sets of the cache.
  static int64_t left_row(int64_t k) {
    return rounded_up<kWidth<Packed>>(depth_of(k)) + kWidth<Packed>;
  }
  static int64_t right_row(int64_t n) { return rounded_up<kColumns>(n) + kWidth<Packed>; }

  // Packs rows of `from` as left operand.
  static void pack_left(Matrix<Source> from, int64_t rows, int64_t k, Packed* to, int64_t to_row) {
    for (int64_t i = 0; i < rows; ++i, to += to_row) {
      const Source* row = from.data + i * from.row;
      if constexpr (kDepth == 1) {
        copy_row(row, from.column, k, to);
      } else {
        Source* elements = reinterpret_cast<Source*>(to);
        if (from.column == 1) {
          std::copy_n(row, k, elements);
        } else {
          for (int64_t p = 0; p < k; ++p) elements[p] = row[p * from.column];
        }
        std::fill(elements + k, elements + depth_of(k) * kDepth, Source());
      }
    }
  }

  // Packs rows of `from` as right operand.
  static void pack_right(Matrix<Source> from, int64_t k, int64_t n, Packed* to, int64_t to_row) {
    for (int64_t p = 0; p < k; p += kDepth, to += to_row) {
      const Source* row = from.data + p * from.row;
      if constexpr (kDepth == 1) {
        copy_row(row, from.column, n, to);
      } else {
        const bool odd = p + 1 == k;
        pair_rows(row, odd ? nullptr : row + from.row, from.column, n, to);
      }
      std::fill(to + n, to + to_row, Packed(0));
    }
    const int64_t last = (k + kDepth - 1) / kDepth;
    std::fill_n(to, (depth_of(k) - last) * to_row, Packed(0));
  }

  static void copy_row(const Source* from, int64_t step, int64_t n, Packed* to) {
    if constexpr (!std::is_same_v<Source, Packed>) {
      widen_row(from, step, n, to);
    } else if (step == 1) {
      std::copy_n(from, n, to);
    } else {
      for (int64_t j = 0; j < n; ++j) to[j] = from[j * step];
    }
  }

  // Elements of two rows side by side; zeros for a second row that is absent.
  static void pair_rows(const Source* row, const Source* next, int64_t step, int64_t n,
                        Packed* to) {
    if (!next) {
      for (int64_t j = 0; j < n; ++j) to[j] = row[j * step].bits;
    } else if (step == 1) {
      for (int64_t j = 0; j < n; ++j) to[j] = pair_of(row[j].bits, next[j].bits);
    } else {
      for (int64_t j = 0; j < n; ++j) to[j] = pair_of(row[j * step].bits, next[j * step].bits);
    }
  }

  // The transpose of n rows of k elements, in panels.
  static int64_t panels_size(int64_t k, int64_t n) { return rounded_up<kColumns>(n) * depth_of(k); }
  static void pack_transposed(Matrix<Source> from, int64_t k, int64_t n, Packed* to) {
    for (int64_t j = 0; j < n; j += kColumns, to += kColumns * depth_of(k)) {
      pack_panel(Format(), {from.data + j * from.row, from.column, from.row}, k,
                 std::min(kColumns, n - j), to);
    }
  }
};

template <class Format>
struct Left {
  const typename Format::Packed* data;
  int64_t row, column;
};

// Panels lie `panel` elements apart, their rows `row`.
template <class Format>
struct Right {
  const typename Format::Packed* data;
  int64_t row, panel;
};

template <class Format>
using Epilogue = MatrixEpilogue<typename Format::Accumulator>;

// Up to kRowsOf rows of a block times one panel.
template <class Format>
void multiply_rows(int64_t rows, int64_t columns, int64_t k, const typename Format::Packed* a,
                   int64_t a_row, [[maybe_unused]] int64_t a_column,
                   const typename Format::Packed* b, int64_t b_row, Epilogue<Format> c, int64_t i,
                   int64_t j, bool accumulate) {
  if constexpr (uses_amx<Format>) {
    NothingInterleaved nothing;
    run_amx_tiles<Format>(rows, columns, k, a, a_row, b, b_row, c, i, j, accumulate, nothing);
  } else {
    run_tile<typename Format::Product>(rows, columns, k, a, a_row, a_column, b, b_row, c, i, j,
                                       accumulate);
  }
}

// c = a b for scores; register tiles that the causal mask hides are skipped. k in packed elements.
template <class Format>
void multiply_scores(int64_t rows, int64_t columns, int64_t k, Left<Format> a, Right<Format> b,
                     Epilogue<Format> c, CausalMask causal_mask) {
  constexpr int64_t panel = Layout<Format>::kColumns;
  for (int64_t j = 0; j < columns; j += panel, b.data += b.panel) {
    const int64_t first = causal_mask.first_row_of(j) / kRowsOf<Format> * kRowsOf<Format>;
    for (int64_t i = first; i < rows; i += kRowsOf<Format>) {
      multiply_rows<Format>(std::min(kRowsOf<Format>, rows - i), std::min(panel, columns - j), k,
                            a.data + i * a.row, a.row, a.column, b.data, b.row, c, i, j, false);
    }
  }
}

// c += a b, where a is a block of rows x k scores: of each row only the visible columns.
template <class Format>
void multiply_visible_columns(int64_t rows, int64_t columns, int64_t k, Left<Format> a,
                              Right<Format> b, Epilogue<Format> c, CausalMask causal_mask) {
  constexpr int64_t panel = Layout<Format>::kColumns;
  for (int64_t j = 0; j < columns; j += panel, b.data += b.panel) {
    for (int64_t i = 0; i < rows; i += kRowsOf<Format>) {
      const int64_t count = std::min(kRowsOf<Format>, rows - i);
      const int64_t visible = causal_mask.columns_of_row(i + count - 1, k);
      if (visible == 0) continue;
      multiply_rows<Format>(count, std::min(panel, columns - j), Layout<Format>::depth_of(visible),
                            a.data + i * a.row, a.row, a.column, b.data, b.row, c, i, j, true);
    }
  }
}

// c += a b, where a is the transpose of a block of k x rows scores: of each column only the rows
// that see it.
template <class Format>
void multiply_visible_rows(int64_t rows, int64_t columns, int64_t k, Left<Format> a,
                           Right<Format> b, Epilogue<Format> c, CausalMask causal_mask) {
  constexpr int64_t panel = Layout<Format>::kColumns;
  const int64_t depth = Layout<Format>::depth_of(k);
  for (int64_t j = 0; j < columns; j += panel, b.data += b.panel) {
    for (int64_t i = 0; i < rows; i += kRowsOf<Format>) {
      const int64_t first =
          causal_mask.first_row_of(i) / Format::kDepth / kStep<Format> * kStep<Format>;
      if (first >= depth) break;
      multiply_rows<Format>(std::min(kRowsOf<Format>, rows - i), std::min(panel, columns - j),
                            depth - first, a.data + i * a.row + first * a.column, a.row, a.column,
                            b.data + first * b.row, b.row, c, i, j, true);
    }
  }
}

// Converts accumulators to elements of the result.
template <class Format, class T, class Sum>
void store(const Sum* from, int64_t n, T* to) {
  if constexpr (std::is_same_v<T, Sum>) {
    std::copy_n(from, n, to);
  } else if constexpr (Format::kDepth > 1) {
    store_run(MatrixEpilogue<T>{to, 0}, to, from, n, false);
  } else {
    constexpr int dtype = std::is_same_v<T, Float16> ? TENON_DTYPE_F16 : TENON_DTYPE_BF16;
    narrow(dtype, from, reinterpret_cast<char*>(to), sizeof(T), n);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
