// SPDX-License-Identifier: Apache-2.0
// What the kernels of attention have in common: a block has 8 warps and 128 rows of its own, 16 of each warp.
// FEATURES is 64 or 128. Comes after mma.cu.
#define WARPS 8
#define ROWS (16 * WARPS)
#define THREADS (32 * WARPS)
#define PITCH (FEATURES + 8)  // rows of shared memory begin in different banks
#define MINUS_INFINITY __int_as_float(0xff800000)

// Matrices lie along up to three axes, the last of them the innermost; a row of blocks has one matrix.
struct Counts {
  int middle, inner;
};
struct Rows {  // elements from one matrix to the next along each axis, and from row to row
  tk_i64 outer, middle, inner, row;
};

// Where the block's matrix begins.
template <class Strides>
static __device__ inline tk_i64 matrix_of_block(const Strides &s, const Counts &counts) {
  const int inner = blockIdx.y % counts.inner, rest = blockIdx.y / counts.inner;
  return rest / counts.middle * s.outer + rest % counts.middle * s.middle + inner * s.inner;
}

// `count` rows from `first` on of a matrix with `length` rows; zeros behind its end.
template <int Count>
static __device__ inline void fetch(Half (*to)[PITCH], const Half *from, tk_i64 row_stride, int first, int length) {
  constexpr int kPieces = FEATURES / 8;  // of 16 bytes in a row
  static_assert(Count * kPieces % THREADS == 0, "every thread copies as much");
#pragma unroll
  for (int i = 0; i < Count * kPieces / THREADS; ++i) {
    const int at = i * THREADS + threadIdx.x, row = at / kPieces, piece = at % kPieces * 8;
    const bool inside = first + row < length;
    copy_async(&to[row][piece], from + (inside ? (first + row) * row_stride : 0) + piece, inside ? 16 : 0);
  }
}
