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

// The product x @ y, or with `is_linear` x @ y^T + bias, into a contiguous `out` (NULL: one that is not
// allocated yet). None: the library does not multiply these layouts, as strides that are negative or
// batches without a common stride, or there is nothing to multiply.
std::optional<Gemm> describe(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* bias,
                             bool is_linear, const tenon_tensor* out);

}  // namespace gpu::blas
