// SPDX-License-Identifier: Apache-2.0
// A matrix product of tensors as a batched GEMM of a BLAS library, which knows column-major matrices
// with a leading dimension.
//
// A row-major matrix is the transposed of a column-major one. The result [m, n] of x [m, k] and
// y [k, n], all row-major, is therefore computed as the column-major D [n, m] = y^T x^T: the library's
// first operand is y, its second one x.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <tenon/abi.h>

namespace gpu::blas {

struct Matrix {
  int64_t ld = 0;            // elements from one row (column, if transposed) to the next
  int64_t batch_stride = 0;  // elements; 0: every batch reads the same matrix
  int64_t transposed = 0;    // 1: columns are contiguous instead of rows
  int64_t alignment = 0;     // bytes that the address of every batch is a multiple of, at most 256

  bool operator==(const Matrix&) const = default;
};

// Everything that the choice of an algorithm depends on. Integers of one size, so that a hash can
// take them as words.
struct Gemm {
  int64_t dtype = 0;
  int64_t m = 0, n = 0, k = 0, batches = 1;
  int64_t has_bias = 0;
  int64_t result_alignment = 0;
  Matrix x, y;

  bool operator==(const Gemm&) const = default;
};

struct GemmHash {
  size_t operator()(const Gemm& gemm) const;
};

// A batched GEMM: one GEMM with a stride from batch to batch, which is repeated along axes of the batch that no single stride joins to the
// others, as the heads of a query that lie behind its rows.
struct BatchedGemm {
  struct Axis {  // strides in elements; the result is contiguous
    int64_t extent, x_stride, y_stride, out_stride;
  };
  static constexpr int kMaxAxes = 4;

  Gemm gemm;
  std::array<Axis, kMaxAxes> outer = {};
  int outer_count = 0;
  int64_t repeats = 1;

  // Calls f(offset of x, of y, of the result), in elements, for each repetition.
  template <class F>
  void each(const F& f) const {
    for (int64_t repeat = 0; repeat < repeats; ++repeat) {
      int64_t x = 0, y = 0, out = 0, index = repeat;
      for (int i = 0; i < outer_count; index /= outer[static_cast<size_t>(i++)].extent) {
        const Axis& axis = outer[static_cast<size_t>(i)];
        x += index % axis.extent * axis.x_stride;
        y += index % axis.extent * axis.y_stride;
        out += index % axis.extent * axis.out_stride;
      }
      f(x, y, out);
    }
  }
};

// The product x @ y, or with `is_linear` x @ y^T + bias, into a contiguous `out` (NULL: one that is not
// allocated yet). None: the library does not multiply these layouts, as strides that are negative, or they
// need too many repetitions, or there is nothing to multiply.
std::optional<BatchedGemm> describe(const tenon_tensor* x, const tenon_tensor* y,
                                    const tenon_tensor* bias, bool is_linear,
                                    const tenon_tensor* out);

}  // namespace gpu::blas
