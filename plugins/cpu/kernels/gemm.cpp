// SPDX-License-Identifier: Apache-2.0
#include "gemm.hpp"

#include "gemm_micro.hpp"
#include <tenon/parallel.hpp>
#include "transpose.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Blocks: a panel of B stays in the first-level cache, a block of A in the second, one of B in the third.
constexpr int64_t kBlockK = 256;
constexpr int64_t kBlockM = 16 * kTileRows;
constexpr int64_t kBlockN = 2048;
// Up to this many rows, B is read once and not worth rearranging.
constexpr int64_t kFewRows = 4;
// B of at most this size is used where it lies: it fits a second-level cache.
constexpr int64_t kDirectBytes = 192 * 1024;

template <class T>
constexpr int64_t kPanel = kTileVectors * kWidth<T>;

struct Freer {
  void operator()(void* memory) const { std::free(memory); }
};
template <class T>
using Buffer = std::unique_ptr<T[], Freer>;
// NULL if memory ran out.
template <class T>
Buffer<T> allocate(int64_t count) {
  const size_t bytes = (static_cast<size_t>(count) * sizeof(T) + 63) & ~size_t{63};
  return Buffer<T>(static_cast<T*>(std::aligned_alloc(64, bytes)));
}

template <class T>
struct Micro {
  void (*run)(int64_t, const T*, int64_t, int64_t, const T*, int64_t, T*, int64_t, bool);
  int rows;
};

// The largest kernel of at most `rows` rows.
template <class T, int V>
Micro<T> choose_micro(int64_t rows) {
  if (rows >= kTileRows) return {micro_kernel<T, kTileRows, V>, kTileRows};
  if constexpr (kTileRows > 8) {
    if (rows >= 8) return {micro_kernel<T, 8, V>, 8};
  }
  if (rows >= 4) return {micro_kernel<T, 4, V>, 4};
  if (rows >= 2) return {micro_kernel<T, 2, V>, 2};
  return {micro_kernel<T, 1, V>, 1};
}

// A panel of C: m rows, at most kPanel columns. B is a panel of dense rows, padded to whole vectors.
template <class T>
void run_panel(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column,
               const T* b, int64_t b_row, T* c, int64_t c_row, bool accumulate) {
  constexpr int64_t width = kWidth<T>;
  const bool wide = n > width;
  const bool whole = n == width || n == kPanel<T>;
  alignas(64) T tile[kTileRows * kPanel<T>];
  for (int64_t i = 0; i < m;) {
    const Micro<T> micro = wide ? choose_micro<T, 2>(m - i) : choose_micro<T, 1>(m - i);
    T* to = c + i * c_row;
    if (whole) {
      micro.run(k, a + i * a_row, a_row, a_column, b, b_row, to, c_row, accumulate);
    } else {
      micro.run(k, a + i * a_row, a_row, a_column, b, b_row, tile, kPanel<T>, false);
      for (int r = 0; r < micro.rows; ++r) {
        const T* from = tile + r * kPanel<T>;
        for (int64_t j = 0; j < n; ++j) {
          to[r * c_row + j] = accumulate ? static_cast<T>(to[r * c_row + j] + from[j]) : from[j];
        }
      }
    }
    i += micro.rows;
  }
}

// k x n of B as dense rows of kPanel elements, the rest zeros.
template <class T>
void pack_panel(Matrix<T> b, int64_t k, int64_t n, T* to) {
  constexpr int64_t panel = kPanel<T>;
  if (n < panel) std::fill_n(to, k * panel, T(0));
  if (b.column == 1) {
    for (int64_t p = 0; p < k; ++p) std::copy_n(b.data + p * b.row, n, to + p * panel);
  } else if (b.row == 1) {
    if constexpr (sizeof(T) == 4) {
      transpose_block<uint32_t, 8>(reinterpret_cast<const uint32_t*>(b.data), b.column,
                                   reinterpret_cast<uint32_t*>(to), panel, n, k);
    } else if constexpr (sizeof(T) == 8) {
      transpose_block<uint64_t, 4>(reinterpret_cast<const uint64_t*>(b.data), b.column,
                                   reinterpret_cast<uint64_t*>(to), panel, n, k);
    } else {
      transpose_block<T, 16 / sizeof(T)>(b.data, b.column, to, panel, n, k);
    }
  } else {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) to[p * panel + j] = b.data[p * b.row + j * b.column];
    }
  }
}

// A block of A in a layout that a cache likes: columns of kTileRows elements if A is dense along
// columns, else rows.
template <class T>
struct PackedBlock {
  static constexpr int64_t kRowStride = kBlockK + 16;  // not a power of two: rows in different sets
  T* data;
  bool by_columns;

  PackedBlock(Matrix<T> a, int64_t m, int64_t k, T* to)
      : data(to), by_columns(a.column != 1 && a.row == 1) {
    if (by_columns) {
      for (int64_t i = 0; i < m; i += kTileRows) {
        const int64_t rows = std::min<int64_t>(kTileRows, m - i);
        for (int64_t p = 0; p < k; ++p) {
          std::copy_n(a.data + i + p * a.column, rows, to + (i * kBlockK + p * kTileRows));
        }
      }
    } else {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t p = 0; p < k; ++p) to[i * kRowStride + p] = a.data[i * a.row + p * a.column];
      }
    }
  }
  const T* rows_from(int64_t i) const {
    return data + i * (by_columns ? kBlockK : kRowStride);  // i is a multiple of kTileRows
  }
  int64_t row_stride() const { return by_columns ? 1 : kRowStride; }
  int64_t column_stride() const { return by_columns ? kTileRows : 1; }
};

// C = A B with B used in place where its rows are dense; only ragged columns are packed.
template <class T>
bool gemm_direct(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
                 bool accumulate) {
  constexpr int64_t panel = kPanel<T>;
  for (int64_t j = 0; j < n; j += panel) {
    const int64_t columns = std::min(panel, n - j);
    const T* from = b.data + j * b.column;
    int64_t from_row = b.row;
    Buffer<T> packed;
    if (b.column != 1 || (columns != panel && columns != kWidth<T>)) {
      packed = allocate<T>(k * panel);
      if (!packed) return false;
      pack_panel<T>({from, b.row, b.column}, k, columns, packed.get());
      from = packed.get();
      from_row = panel;
    }
    run_panel(m, columns, k, a.data, a.row, a.column, from, from_row, c + j, c_row, accumulate);
  }
  return true;
}

// Goto's order of loops, with packed blocks.
template <class T>
bool gemm_blocked(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
                  bool accumulate) {
  constexpr int64_t panel = kPanel<T>;
  const int64_t panels = (std::min(n, kBlockN) + panel - 1) / panel;
  const Buffer<T> packed_b = allocate<T>(panels * panel * kBlockK);
  const Buffer<T> packed_a = allocate<T>(kBlockM * PackedBlock<T>::kRowStride);
  if (!packed_a || !packed_b) return false;
  for (int64_t jb = 0; jb < n; jb += kBlockN) {
    const int64_t block_n = std::min(kBlockN, n - jb);
    for (int64_t pb = 0; pb < k; pb += kBlockK) {
      const int64_t block_k = std::min(kBlockK, k - pb);
      for (int64_t j = 0; j < block_n; j += panel) {
        pack_panel<T>({b.data + pb * b.row + (jb + j) * b.column, b.row, b.column}, block_k,
                      std::min(panel, block_n - j), packed_b.get() + j * kBlockK);
      }
      for (int64_t ib = 0; ib < m; ib += kBlockM) {
        const int64_t block_m = std::min(kBlockM, m - ib);
        const PackedBlock<T> block({a.data + ib * a.row + pb * a.column, a.row, a.column}, block_m,
                                   block_k, packed_a.get());
        for (int64_t j = 0; j < block_n; j += panel) {
          for (int64_t i = 0; i < block_m; i += kTileRows) {
            run_panel(std::min<int64_t>(kTileRows, block_m - i), std::min(panel, block_n - j),
                      block_k, block.rows_from(i), block.row_stride(), block.column_stride(),
                      packed_b.get() + j * kBlockK, panel, c + (ib + i) * c_row + jb + j, c_row,
                      accumulate || pb > 0);
          }
        }
      }
    }
  }
  return true;
}

// Few rows of A against a B that is dense along k: dot products, four columns of B at a time.
template <class T>
void gemm_dots(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
               bool accumulate) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  constexpr int64_t width = kWidth<T>;
  const auto load = [](const T* p) -> Vector { return *reinterpret_cast<const Unaligned*>(p); };
  const auto total = [](Vector v) {
    T sum = 0;
    for (int i = 0; i < kWidth<T>; ++i) sum += v[i];
    return sum;
  };
  const auto put = [&](int64_t i, int64_t j, T value) {
    T& to = c[i * c_row + j];
    to = accumulate ? static_cast<T>(to + value) : value;
  };
  for (int64_t j = 0; j < n; j += 4) {
    const int64_t columns = std::min<int64_t>(4, n - j);
    // Past the end, the last column stands in.
    const T* column[4];
    for (int q = 0; q < 4; ++q) column[q] = b.data + std::min<int64_t>(j + q, n - 1) * b.column;
    for (int64_t i = 0; i < m; ++i) {
      const T* x = a.data + i * a.row;
      Vector even[4] = {}, odd[4] = {};
      int64_t p = 0;
      for (; p + 2 * width <= k; p += 2 * width) {
        const Vector x0 = load(x + p), x1 = load(x + p + width);
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) {
          even[q] += x0 * load(column[q] + p);
          odd[q] += x1 * load(column[q] + p + width);
        }
      }
      for (int q = 0; q < columns; ++q) {
        T sum = total(even[q] + odd[q]);
        for (int64_t r = p; r < k; ++r) sum = static_cast<T>(sum + x[r] * column[q][r]);
        put(i, j + q, sum);
      }
    }
  }
}

// Few rows of A against a B with dense rows: four rows of B at a time are added to C.
template <class T>
void gemm_streams(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
                  bool accumulate) {
  constexpr int64_t block = 4096 / sizeof(T);  // of a row of C: stays in the first-level cache
  for (int64_t jb = 0; jb < n; jb += block) {
    const int64_t columns = std::min(block, n - jb);
    for (int64_t i = 0; i < m; ++i) {
      T* to = c + i * c_row + jb;
      if (!accumulate) std::fill_n(to, columns, T(0));
    }
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      const T* r0 = b.data + p * b.row + jb;
      const T *r1 = r0 + b.row, *r2 = r1 + b.row, *r3 = r2 + b.row;
      for (int64_t i = 0; i < m; ++i) {
        const T* x = a.data + i * a.row + p * a.column;
        const T x0 = x[0], x1 = x[a.column], x2 = x[2 * a.column], x3 = x[3 * a.column];
        T* __restrict to = c + i * c_row + jb;
        for (int64_t j = 0; j < columns; ++j) {
          to[j] = static_cast<T>(to[j] + (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j]));
        }
      }
    }
    for (; p < k; ++p) {
      const T* r = b.data + p * b.row + jb;
      for (int64_t i = 0; i < m; ++i) {
        const T x = a.data[i * a.row + p * a.column];
        T* __restrict to = c + i * c_row + jb;
        for (int64_t j = 0; j < columns; ++j) to[j] = static_cast<T>(to[j] + x * r[j]);
      }
    }
  }
}

// No memory, no hurry.
template <class T>
void gemm_plain(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
                bool accumulate) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = accumulate ? c[i * c_row + j] : T(0);
      for (int64_t p = 0; p < k; ++p) {
        sum = static_cast<T>(sum + a.data[i * a.row + p * a.column] *
                                       b.data[p * b.row + j * b.column]);
      }
      c[i * c_row + j] = sum;
    }
  }
}

}  // namespace

template <class T>
void gemm_serial(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
                 bool accumulate) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (int64_t i = 0; i < m && !accumulate; ++i) std::fill_n(c + i * c_row, n, T(0));
    return;
  }
  if (n == 1 && c_row == 1) {  // a column times a matrix: the same as a row times its transpose
    std::swap(m, n);
    std::swap(a, b);
    std::swap(a.row, a.column);
    std::swap(b.row, b.column);
    c_row = n;
  }
  if (m <= kFewRows && b.row == 1 && (a.column == 1 || k == 1)) {
    return gemm_dots(m, n, k, a, b, c, c_row, accumulate);
  }
  if (m <= kFewRows && b.column == 1) {
    return gemm_streams(m, n, k, a, b, c, c_row, accumulate);
  }
  const bool small = k * n * static_cast<int64_t>(sizeof(T)) <= kDirectBytes;
  const bool done = small && (b.column == 1 || n <= kPanel<T>) && n <= 4 * kPanel<T>
                        ? gemm_direct(m, n, k, a, b, c, c_row, accumulate)
                        : gemm_blocked(m, n, k, a, b, c, c_row, accumulate);
  if (!done) gemm_plain(m, n, k, a, b, c, c_row, accumulate);
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
          bool accumulate, const BatchOffsets& batch) {
  int64_t items = 1;
  for (int i = 0; i < batch.count; ++i) items *= batch.extent[i];
  if (items == 0 || m == 0 || n == 0) return;
  // One product is cut into tiles, about two for each thread that items alone leave idle.
  const int64_t work = std::max<int64_t>(1, m * n * k / kWidth<T>);
  const int64_t wanted = items * work <= kSerialWork
                             ? 1
                             : (2 * host->thread_count() + items - 1) / items;
  int64_t rows = m, columns = n;
  while ((m + rows - 1) / rows * ((n + columns - 1) / columns) < wanted) {
    // Halve the longer side, to a multiple of the register tile.
    const bool split_rows = rows * 2 > columns;
    int64_t& side = split_rows ? rows : columns;
    const int64_t unit = split_rows ? kTileRows : kPanel<T>;
    const int64_t half = (side / 2 + unit - 1) / unit * unit;
    if (half >= side || half * (split_rows ? columns : rows) * k < kSerialWork) break;
    side = half;
  }
  const int64_t tiles_down = (m + rows - 1) / rows, tiles_across = (n + columns - 1) / columns;
  const int64_t tiles = tiles_down * tiles_across;
  parallel(items * tiles, work / tiles, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t % tiles / tiles_across * rows, j = t % tiles_across * columns;
      int64_t item = t / tiles, a_offset = 0, b_offset = 0, c_offset = 0;
      for (int d = batch.count - 1; d >= 0; --d) {
        const int64_t index = item % batch.extent[d];
        item /= batch.extent[d];
        a_offset += index * batch.a[d];
        b_offset += index * batch.b[d];
        c_offset += index * batch.c[d];
      }
      gemm_serial<T>(std::min(rows, m - i), std::min(columns, n - j), k,
                     {a.data + a_offset + i * a.row, a.row, a.column},
                     {b.data + b_offset + j * b.column, b.row, b.column},
                     c + c_offset + i * c_row + j, c_row, accumulate);
    }
  });
}

#define TENON_GEMM(T)                                                                            \
  template void gemm_serial<T>(int64_t, int64_t, int64_t, Matrix<T>, Matrix<T>, T*, int64_t,     \
                               bool);                                                            \
  template void gemm<T>(int64_t, int64_t, int64_t, Matrix<T>, Matrix<T>, T*, int64_t, bool,      \
                        const BatchOffsets&);
TENON_GEMM(float)
TENON_GEMM(double)
TENON_GEMM(uint8_t)
TENON_GEMM(uint16_t)
TENON_GEMM(uint32_t)
TENON_GEMM(uint64_t)
#undef TENON_GEMM

}  // namespace tenon::cpu::TENON_CPU_ISA
