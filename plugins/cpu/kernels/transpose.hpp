// SPDX-License-Identifier: Apache-2.0
// Transposition of blocks, in registers.
#pragma once

#include "dtypes.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

// Register tiles of N x N elements, transposed in log2(N) rounds of shuffles between pairs of rows.
template <class T, int N>
struct Tile {
  typedef T Row __attribute__((vector_size(N * sizeof(T))));
  static void transpose(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
    Row rows[N];
    for (int i = 0; i < N; ++i) std::memcpy(&rows[i], from + i * from_stride, sizeof(Row));
    // Interleaving row i with row i + N/2, log2(N) times over, is the transposition.
    const auto [low, high] = masks(std::make_integer_sequence<int, N>());
    for (int round = 1; round < N; round *= 2) {
      Row next[N];
      for (int i = 0; i < N / 2; ++i) {
        next[2 * i] = __builtin_shuffle(rows[i], rows[i + N / 2], low);
        next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + N / 2], high);
      }
      for (int i = 0; i < N; ++i) rows[i] = next[i];
    }
    for (int i = 0; i < N; ++i) std::memcpy(to + i * to_stride, &rows[i], sizeof(Row));
  }

 private:
  struct Masks {
    Row low, high;
  };
  template <int... I>
  static constexpr Masks masks(std::integer_sequence<int, I...>) {
    return {Row{static_cast<T>(I / 2 + I % 2 * N)...},
            Row{static_cast<T>(N / 2 + I / 2 + I % 2 * N)...}};
  }
};

// to[j][i] = from[i][j] for a rows x columns block; strides in elements.
template <class T, int N>
void transpose_block(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                     int64_t columns) {
  int64_t i = 0;
  for (; i + N <= rows; i += N) {
    int64_t j = 0;
    for (; j + N <= columns; j += N) {
      Tile<T, N>::transpose(from + i * from_stride + j, from_stride, to + j * to_stride + i,
                            to_stride);
    }
    for (; j < columns; ++j) {
      for (int64_t k = i; k < i + N; ++k) to[j * to_stride + k] = from[k * from_stride + j];
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

// The same where the rows of `to` meet in a few sets of the first-level cache: whole cache lines are put
// together before they are written.
template <class T, int N>
void transpose_by_lines(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                        int64_t columns) {
  constexpr int line = 64 / sizeof(T);
  int64_t i = 0;
  for (; i + line <= rows; i += line) {
    int64_t j = 0;
    for (; j + line <= columns; j += line) {
      alignas(64) T lines[line * line];
      const T* corner = from + i * from_stride + j;
      for (int k = 0; k < line; k += N) {
        for (int l = 0; l < line; l += N) {
          Tile<T, N>::transpose(corner + k * from_stride + l, from_stride, lines + l * line + k, line);
        }
      }
      for (int k = 0; k < line; ++k) std::memcpy(to + (j + k) * to_stride + i, lines + k * line, 64);
    }
    transpose_block<T, N>(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride,
                          line, columns - j);
  }
  transpose_block<T, N>(from + i * from_stride, from_stride, to + i, to_stride, rows - i, columns);
}

// The same for elements of `size` bytes, up to 8, and strides in bytes.
inline void transpose_bytes(int size, const char* from, int64_t from_stride, char* to,
                            int64_t to_stride, int64_t rows, int64_t columns) {
  const auto run = [&]<class T, int N>(Type<T>, std::integral_constant<int, N>) {
    const auto transpose = to_stride % 1024 == 0 ? transpose_by_lines<T, N> : transpose_block<T, N>;
    transpose(reinterpret_cast<const T*>(from), from_stride / size, reinterpret_cast<T*>(to),
              to_stride / size, rows, columns);
  };
  switch (size) {
    case 1: return run(Type<uint8_t>{}, std::integral_constant<int, 16>{});
    case 2: return run(Type<uint16_t>{}, std::integral_constant<int, 8>{});
    case 4: return run(Type<uint32_t>{}, std::integral_constant<int, 8>{});
    default: return run(Type<uint64_t>{}, std::integral_constant<int, 4>{});
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
