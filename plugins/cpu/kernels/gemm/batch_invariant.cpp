// SPDX-License-Identifier: Apache-2.0
// linear with bits that do not depend on the number of rows. The kernels of `linear` for few rows add products in other
// orders than those for many. Here an element is always the same: 64 bytes of accumulators that step along k, then their
// sum. Rows of x and of the weight are read in place, so that one row takes as long as reading the weight.
#include "gemm/batch_invariant.hpp"

#include "elementwise/low_precision.hpp"
#include "gemm/vectors.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"
#include "simd/transpose.hpp"

#include <tenon/signatures/linalg.h>

#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Rows of x, and as many rows of the weight, whose accumulators fill the registers.
constexpr int kTile = kVectorBytes == 64 ? 4 : kVectorBytes == 32 ? 2 : 1;
// Rows of x and of the weight of one task: accumulators and parts of rows stay in the L2 cache.
constexpr int64_t kRows = 64, kColumns = 16;
constexpr int64_t kDepth = 512;  // along k, of a part of the rows

template <class T>
struct Accumulators {
  typedef T Type __attribute__((vector_size(64)));
};

// Elements of 16 bits are accumulated in float32.
template <class Element>
using SumOf = std::conditional_t<std::is_same_v<Element, double>, double, float>;
template <class Element>
using Lanes = typename Accumulators<SumOf<Element>>::Type;
template <class Element>
constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(SumOf<Element>));

template <class Element>
[[gnu::always_inline]] inline Lanes<Element> load(const Element* from) {
  Lanes<Element> result;
  if constexpr (std::is_same_v<Element, BFloat16>) {
    typedef uint16_t Halves __attribute__((vector_size(32)));
    typedef uint32_t Wide __attribute__((vector_size(64)));
    Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    result = Lanes<Element>(__builtin_convertvector(halves, Wide) << 16);
  } else if constexpr (std::is_same_v<Element, Float16>) {
#if defined(__AVX512F__)
    result = Lanes<Element>(
        _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
#elif defined(__F16C__)
    const auto* halves = reinterpret_cast<const __m128i*>(from);
    const __m256 wide[2] = {_mm256_cvtph_ps(_mm_loadu_si128(halves)),
                            _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
    std::memcpy(&result, wide, sizeof result);
#elif defined(__aarch64__)
    float wide[16];
    for (int i = 0; i < 16; i += 4)
      vst1q_f32(wide + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from[i].bits))));
    std::memcpy(&result, wide, sizeof result);
#else
    for (int i = 0; i < 16; ++i) result[i] = from[i];
#endif
  } else {
    std::memcpy(&result, from, sizeof result);
  }
  return result;
}

// The first `count` elements, and zeros.
template <class Element>
Lanes<Element> load_some(const Element* from, int64_t count) {
  Element some[kLanes<Element>] = {};
  std::copy_n(from, count, some);
  return load(some);
}

// The sums of `count` accumulators, to the beginning of `to`: halves are added until one element is left.
template <class T>
void add_up(const typename Accumulators<T>::Type* accumulators, int64_t count, T* to) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr int lanes = 64 / sizeof(T);
  alignas(64) T across[lanes][kColumns] = {};  // accumulators side by side
  transpose_block<Bits>(reinterpret_cast<const Bits*>(accumulators), lanes,
                        reinterpret_cast<Bits*>(across), kColumns, count, lanes);
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      for (int64_t c = 0; c < kColumns; ++c) across[i][c] += across[i + half][c];
    }
  }
  std::memcpy(to, across[0], sizeof across[0]);
}

// Rows of x times rows of a weight [n, k].
template <class Element>
struct Rows {
  using Sums = Lanes<Element>;
  const Element *x, *weight, *bias;  // the last may be NULL
  Element* out;
  int64_t m, n, k;

  static constexpr int64_t kScratch = kRows * kColumns * int64_t{sizeof(Sums)};

  // Columns [j, last_j) of rows [i, last_i) of the result.
  void run(int64_t i, int64_t last_i, int64_t j, int64_t last_j, Sums* sums) const {
    // Accumulators of a single tile stay in registers.
    const int64_t depth = last_i - i <= kTile ? std::max<int64_t>(k, 1) : kDepth;
    std::fill_n(sums, (last_i - i) * kColumns, Sums{});
    for (int64_t p = 0; p < k; p += depth) {
      const int64_t end = std::min(k, p + depth);
      int64_t row = i;
      for (; row + kTile <= last_i; row += kTile) add_rows<kTile>(row, i, j, last_j, p, end, sums);
      for (; row < last_i; ++row) add_rows<1>(row, i, j, last_j, p, end, sums);
    }
    for (int64_t row = i; row < last_i; ++row) {
      SumOf<Element> totals[kColumns];
      add_up(sums + (row - i) * kColumns, last_j - j, totals);
      for (int64_t column = j; column < last_j; ++column) {
        auto total = totals[column - j];
        if (bias) total += static_cast<SumOf<Element>>(bias[column]);
        out[row * n + column] = Element(total);
      }
    }
  }

 private:
  template <int rows>
  void add_rows(int64_t row, int64_t i, int64_t j, int64_t last_j, int64_t p, int64_t end,
                Sums* sums) const {
    Sums* at = sums + (row - i) * kColumns;
    int64_t column = j;
    // A single row of x waits for memory alone, which is fastest where it is read from one address on: row by row.
    for (; m > 1 && column + kTile <= last_j; column += kTile)
      add_tile<rows, kTile>(row, column, p, end, at + column - j);
    for (; column < last_j; ++column) add_tile<rows, 1>(row, column, p, end, at + column - j);
  }

  // Products of elements [p, end) of rows, added to accumulators, whose rows are kColumns apart.
  template <int rows, int columns>
  void add_tile(int64_t row, int64_t column, int64_t p, int64_t end, Sums* sums) const {
    Sums acc[rows][columns];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) acc[r][c] = sums[r * kColumns + c];
    }
    const Element *left = x + row * k, *right = weight + column * k;
    const auto step = [&](auto&& read) {
      Sums weights[columns];
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) weights[c] = read(right + c * k + p);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const Sums numbers = read(left + r * k + p);
#pragma GCC unroll 4
        for (int c = 0; c < columns; ++c) acc[r][c] += numbers * weights[c];
      }
    };
    for (; p + kLanes<Element> <= end; p += kLanes<Element>)
      step([](const Element* from) { return load(from); });
    if (p < end) step([&](const Element* from) { return load_some(from, end - p); });
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) sums[r * kColumns + c] = acc[r][c];
    }
  }
};

template <class Element>
tenon_status run(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                 const tenon_tensor* bias, tenon_tensor* out, tenon_err* err) {
  const int64_t n = weight->shape[0], k = weight->shape[1];
  const Rows<Element> product{.x = data_of<Element>(x),
                              .weight = data_of<Element>(weight),
                              .bias = bias ? data_of<Element>(bias) : nullptr,
                              .out = data_of<Element>(out),
                              .m = out->numel / n,
                              .n = n,
                              .k = k};
  const int64_t across = (n + kColumns - 1) / kColumns, down = (product.m + kRows - 1) / kRows;
  const int64_t rows = std::min(product.m, kRows);
  const int64_t work = kColumns * std::max<int64_t>(k, 1) * (rows + 1) / 4;
  return parallel_for_with_scratch(
      ctx, across * down, work, Rows<Element>::kScratch, err, [&](int64_t task, void* memory) {
        const int64_t i = task / across * kRows, j = task % across * kColumns;
        product.run(i, std::min(product.m, i + kRows), j, std::min(n, j + kColumns),
                    static_cast<Lanes<Element>*>(memory));
      });
}

}  // namespace

tenon_status linear_batch_invariant(tenon_ctx* ctx, const tenon_tensor* x,
                                    const tenon_tensor* weight, const tenon_tensor* bias,
                                    tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  switch (x->dtype) {
    case TENON_DTYPE_F32:
      return run<float>(ctx, x, weight, bias, out, err);
    case TENON_DTYPE_F64:
      return run<double>(ctx, x, weight, bias, out, err);
    case TENON_DTYPE_F16:
      return run<Float16>(ctx, x, weight, bias, out, err);
    case TENON_DTYPE_BF16:
      return run<BFloat16>(ctx, x, weight, bias, out, err);
    default:
      return run_as_float32(linear_batch_invariant, ctx, err, x, weight, bias, out);
  }
}
namespace {

TENON_BOX_linear_batch_invariant(linear_batch_invariant_boxed, linear_batch_invariant);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_linear_batch_invariant(linear_batch_invariant, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList batch_invariant_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
