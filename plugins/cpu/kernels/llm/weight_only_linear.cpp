// SPDX-License-Identifier: Apache-2.0
// linear of few rows with a weight of 8 or 4 bits and floating scales. Threads divide the rows of the weight, four at a time,
// which are decoded into the cache; an element of the result is a chain of multiply-adds along k. Many rows are left to the
// decomposition, whose product of floats is faster then.
#include "kernel.hpp"
#include "llm/block_weights.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/quantization.h>

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int kRows = 4;          // of the weight
constexpr int64_t kMaxRows = 64;  // of x
constexpr int64_t kPart = 256;    // elements of a row that are decoded at once for few rows of x
constexpr int kTile = kVectorBytes == 64 ? 4 : 1;  // rows of x for each reading of decoded weights

struct Product {
  const float *x, *scale, *bias;  // bias may be NULL
  const int8_t* weight;
  float* out;
  int64_t m, n, k, group;
  bool is_halved;  // two numbers in a byte
};

Lanes load_codes(const Product& p, const int8_t* row, int64_t k) {
  if (!p.is_halved) return numbers_of(row + k);
  alignas(16) int8_t codes[kLanes];
#ifdef __SSE2__
  const __m128i nibble = _mm_set1_epi8(15), eights = _mm_set1_epi8(8);
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + k / 2));
  const __m128i pairs = _mm_unpacklo_epi8(_mm_and_si128(bytes, nibble),
                                          _mm_and_si128(_mm_srli_epi16(bytes, 4), nibble));
  _mm_store_si128(reinterpret_cast<__m128i*>(codes),
                  _mm_sub_epi8(_mm_xor_si128(pairs, eights), eights));  // carries the sign
#elif defined(__aarch64__)
  const int8x8_t bytes = vld1_s8(row + k / 2);
  const int8x8x2_t pairs = {{vshr_n_s8(vshl_n_s8(bytes, 4), 4), vshr_n_s8(bytes, 4)}};
  vst2_s8(codes, pairs);  // in turn
#else
  for (int i = 0; i < kLanes / 2; ++i) {
    const int byte = row[k / 2 + i];
    codes[2 * i] = static_cast<int8_t>(static_cast<int8_t>(byte << 4) >> 4);
    codes[2 * i + 1] = static_cast<int8_t>(byte >> 4);
  }
#endif
  return numbers_of(codes);
}

// Elements [begin, end) of row j of the weight.
void decode(const Product& p, int64_t j, int64_t begin, int64_t end, float* to) {
  const int8_t* row = p.weight + j * (p.is_halved ? p.k / 2 : p.k);
  const float* scale = p.scale + j * (p.k / p.group);
  for (int64_t k = begin; k < end;) {
    const float factor = scale[k / p.group];
    for (const int64_t last = std::min(end, (k / p.group + 1) * p.group); k < last; k += kLanes) {
      const Lanes numbers = load_codes(p, row, k) * factor;
      std::memcpy(to + k - begin, &numbers, sizeof numbers);
    }
  }
}

// Adds products of elements [begin, end) of `tile` rows of x with decoded rows, which are `stride` apart.
template <int tile>
void add(const Product& p, int64_t i, int64_t begin, int64_t end, const float* decoded,
         int64_t stride, Lanes (&sums)[tile][kRows]) {
  for (int64_t k = begin; k < end; k += kLanes) {
    for (int row = 0; row < kRows; ++row) {
      const Lanes weights = load_lanes(decoded + row * stride + k - begin);
      for (int t = 0; t < tile; ++t)
        sums[t][row] = multiply_add(weights, load_lanes(p.x + (i + t) * p.k + k), sums[t][row]);
    }
  }
}

template <int tile>
void put(const Product& p, int64_t i, int64_t j, int64_t rows, const Lanes (&sums)[tile][kRows]) {
  for (int t = 0; t < tile; ++t) {
    for (int64_t row = 0; row < rows; ++row) {
      const float sum = sum_of(sums[t][row]);
      p.out[(i + t) * p.n + j + row] = p.bias ? sum + p.bias[j + row] : sum;
    }
  }
}

void multiply(const Product& p, int64_t j, float* decoded) {
  const int64_t rows = std::min<int64_t>(kRows, p.n - j);
  const auto decode_rows = [&](int64_t begin, int64_t end, int64_t stride) {
    for (int64_t row = 0; row < kRows; ++row)  // the last one again where there are fewer
      decode(p, j + std::min(row, rows - 1), begin, end, decoded + row * stride);
  };
  if (p.m == 1) {
    Lanes sums[1][kRows] = {};
    for (int64_t k = 0; k < p.k; k += kPart) {
      const int64_t end = std::min(p.k, k + kPart);
      decode_rows(k, end, kPart);
      add<1>(p, 0, k, end, decoded, kPart, sums);
    }
    return put<1>(p, 0, j, rows, sums);
  }
  decode_rows(0, p.k, p.k);
  int64_t i = 0;
  const auto run = [&]<int tile>(std::integral_constant<int, tile>) {
    Lanes sums[tile][kRows] = {};
    add<tile>(p, i, 0, p.k, decoded, p.k, sums);
    put<tile>(p, i, j, rows, sums);
  };
  for (; i + kTile <= p.m; i += kTile) run(std::integral_constant<int, kTile>{});
  for (; i < p.m; ++i) run(std::integral_constant<int, 1>{});
}

tenon_status weight_only_linear(tenon_ctx* ctx, const tenon_tensor* x,
                                const tenon_tensor* quantized, const tenon_tensor* scale,
                                const tenon_tensor* bias, int64_t bits,
                                const tenon_value* group_size, tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  if (is_low_precision(x->dtype))
    return run_as_float32(weight_only_linear, ctx, err, x, quantized, scale, bias, bits, group_size,
                          out);
  const int64_t n = quantized->shape[0], k = x->shape[x->ndim - 1];
  const Product p{.x = data_of<float>(x),
                  .scale = data_of<float>(scale),
                  .bias = bias ? data_of<float>(bias) : nullptr,
                  .weight = data_of<int8_t>(quantized),
                  .out = data_of<float>(out),
                  .m = out->numel / n,
                  .n = n,
                  .k = k,
                  .group = scale->ndim == 1 ? k : k / scale->shape[1],
                  .is_halved = bits == 4};
  const int64_t tasks = (n + kRows - 1) / kRows, work = kRows * k * (p.m + 1);
  const int64_t bytes = kRows * (p.m == 1 ? kPart : k) * static_cast<int64_t>(sizeof(float));
  return parallel_for_with_scratch(ctx, tasks, work, bytes, err, [&](int64_t task, void* own) {
    multiply(p, task * kRows, static_cast<float*>(own));
  });
}
TENON_BOX_weight_only_linear(weight_only_linear_boxed, weight_only_linear);

// A composite operator: its arguments have not been checked yet. What does not fit goes to the decomposition, which tells.
int32_t weight_only_linear_fits(const tenon_value* args, uint32_t) {
  for (int i = 0; i < 3; ++i)
    if (args[i].tag != TENON_VALUE_TENSOR) return 0;
  const auto tensor = [&](int i) { return static_cast<const tenon_tensor*>(args[i].v.p); };
  const tenon_tensor *x = tensor(0), *quantized = tensor(1), *scale = tensor(2);
  const int64_t bits = args[4].v.i;
  if (x->ndim == 0 || quantized->ndim != 2 || quantized->dtype != TENON_DTYPE_I8 ||
      scale->dtype != x->dtype || (bits != 8 && bits != 4))
    return 0;
  const int64_t n = quantized->shape[0], k = quantized->shape[1] * (bits == 4 ? 2 : 1);
  if (n == 0 || k == 0 || k % kLanes != 0 || x->shape[x->ndim - 1] != k || x->numel / k > kMaxRows)
    return 0;
  if (args[5].tag == TENON_VALUE_NONE) {
    if (scale->ndim != 1 || scale->shape[0] != n) return 0;
  } else {
    const int64_t group = args[5].v.i;
    if (group < 1 || group % kLanes != 0 || k % group != 0 || scale->ndim != 2 ||
        scale->shape[0] != n || scale->shape[1] != k / group)
      return 0;
  }
  if (args[3].tag == TENON_VALUE_NONE) return 1;
  return args[3].tag == TENON_VALUE_TENSOR && tensor(3)->dtype == x->dtype &&
         tensor(3)->ndim == 1 && tensor(3)->shape[0] == n;
}

const tenon_kernel_def kKernels[] = {
    with_can_run(TENON_KERNEL_weight_only_linear(weight_only_linear, nullptr,
                                                 kFloats & ~dtype_bit(TENON_DTYPE_F64), 0, 0),
                 weight_only_linear_fits)};

}  // namespace

KernelList weight_only_linear_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
