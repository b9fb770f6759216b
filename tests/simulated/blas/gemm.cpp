// SPDX-License-Identifier: Apache-2.0
#include "gemm.hpp"

#include <complex>
#include <utility>

#include "../stored_float.hpp"

namespace simulated {
namespace {

template <class T, class Accumulator>
void multiply(const Gemm& gemm, const char* a, const char* b, const char* bias, char* d) {
  const auto element = [](const char* data, const GemmMatrix& matrix, int64_t batch, uint64_t row,
                          uint64_t column) {
    if (matrix.transposed) std::swap(row, column);
    const int64_t at = batch * matrix.batch_stride + static_cast<int64_t>(row) +
                       static_cast<int64_t>(column) * matrix.ld;
    return static_cast<Accumulator>(reinterpret_cast<const T*>(data)[at]);
  };
  const uint64_t depth = gemm.a.transposed ? gemm.a.rows : gemm.a.columns;
  for (int64_t batch = 0; batch < gemm.batches; ++batch)
    for (uint64_t column = 0; column < gemm.d.columns; ++column)
      for (uint64_t row = 0; row < gemm.d.rows; ++row) {
        Accumulator sum = 0;
        for (uint64_t k = 0; k < depth; ++k)
          sum += element(a, gemm.a, batch, row, k) * element(b, gemm.b, batch, k, column);
        sum *= static_cast<Accumulator>(gemm.alpha);
        if (bias) sum += static_cast<Accumulator>(reinterpret_cast<const T*>(bias)[row]);
        reinterpret_cast<T*>(d)[batch * gemm.d.batch_stride + static_cast<int64_t>(row) +
                                static_cast<int64_t>(column) * gemm.d.ld] = from_computed<T>(sum);
      }
}

}  // namespace

uint64_t blas_type_bytes(int type) {
  switch (type) {
    case kReal32:
      return 4;
    case kReal64:
    case kComplex32:
      return 8;
    case kComplex64:
      return 16;
    case kReal16:
    case kBrain16:
      return 2;
    default:
      return 0;
  }
}

uint64_t extent_bytes(const GemmMatrix& matrix, int32_t batches, int type) {
  const int64_t last = (batches - 1) * matrix.batch_stride +
                       (static_cast<int64_t>(matrix.columns) - 1) * matrix.ld +
                       static_cast<int64_t>(matrix.rows);
  return static_cast<uint64_t>(last) * blas_type_bytes(type);
}

void run_gemm(const Gemm& gemm, void* (*at)(const void*, uint64_t)) {
  const auto find = [&](const GemmMatrix& matrix) {
    return static_cast<char*>(at(matrix.data, extent_bytes(matrix, gemm.batches, gemm.type)));
  };
  const char *a = find(gemm.a), *b = find(gemm.b), *bias = nullptr;
  char* d = find(gemm.d);
  if (gemm.bias)
    bias = static_cast<const char*>(at(gemm.bias, gemm.d.rows * blas_type_bytes(gemm.type)));
  if (!a || !b || !d) return;  // freed meanwhile; a device would fault
  switch (gemm.type) {
    case kReal32:
      return multiply<float, float>(gemm, a, b, bias, d);
    case kReal64:
      return multiply<double, double>(gemm, a, b, bias, d);
    case kComplex32:
      return multiply<std::complex<float>, std::complex<float>>(gemm, a, b, bias, d);
    case kComplex64:
      return multiply<std::complex<double>, std::complex<double>>(gemm, a, b, bias, d);
    case kReal16:
      return multiply<Float16, float>(gemm, a, b, bias, d);
    default:
      return multiply<Bfloat16, float>(gemm, a, b, bias, d);
  }
}

}  // namespace simulated
