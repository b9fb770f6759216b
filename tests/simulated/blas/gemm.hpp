// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the BLAS stand-in: D = op(A) op(B) + bias, column-major, one element at a time.
#pragma once

#include <cstdint>

namespace simulated {

// cudaDataType_t, hipDataType.
enum BlasType : int {
  kReal32 = 0,
  kReal64 = 1,
  kReal16 = 2,
  kComplex32 = 4,
  kComplex64 = 5,
  kBrain16 = 14
};

uint64_t blas_type_bytes(int type);  // 0: unknown

struct GemmMatrix {
  const void* data = nullptr;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0, batch_stride = 0;
  bool transposed = false;
};

struct Gemm {
  int type = kReal32;
  double alpha = 1;
  int32_t batches = 1;
  GemmMatrix a, b, d;
  const void* bias = nullptr;  // one element for each row of D
};

// The bytes from the first to behind the last element that a matrix with its batches occupies.
uint64_t extent_bytes(const GemmMatrix& matrix, int32_t batches, int type);

// Reads and writes the memory that the matrices name; `at` translates an address of the device.
void run_gemm(const Gemm& gemm, void* (*at)(const void*, uint64_t));

}  // namespace simulated
