// SPDX-License-Identifier: Apache-2.0
// Products of floats with weights in blocks. Threads divide the rows of the weight, four at a time. For one row of x, blocks are
// decoded into registers as they are multiplied; for several, rows of the weight are decoded into the cache first. An
// element of the result is always the same chain of multiply-adds along k, so that its bits depend on its row of x alone.
#include "llm/linear_blocks.hpp"

#include "kernel.hpp"
#include "llm/block_weights.hpp"
#include "llm/linear_blocks_int8.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/quantization.h>

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int kRows = 4;  // of the weight
// Rows of x for each reading of decoded weights: what the registers have accumulators for.
constexpr int kTile = kVectorBytes == 64 ? 4 : 1;

void put(const BlocksProduct& p, int64_t i, int64_t j, Lanes sums) {
  const float sum = sum_of(sums);
  p.out[i * p.n + j] = p.bias ? sum + p.bias[j] : sum;
}

// One row of x and `rows` rows of the weight from row j.
template <class Blocks, int rows>
void multiply_one(const BlocksProduct& p, int64_t j) {
  constexpr int kGroups = Blocks::kElements / kLanes;
  Lanes sums[rows] = {};
  const uint8_t* block = p.weight + j * p.row_bytes;
  for (int64_t k = 0; k < p.k; k += Blocks::kElements, block += Blocks::kBytes) {
    for (int row = 0; row < rows; ++row) {
      // Into the L2 cache, what is multiplied after the next rows: the processor's own prefetcher does not see where rows end.
      for (int at = 0; at < Blocks::kBytes; at += 64)
        __builtin_prefetch(block + (row + 2 * rows) * p.row_bytes + at, 0, 2);
      Lanes weights[kGroups];
      Blocks::decode(block + row * p.row_bytes, weights);
      for (int group = 0; group < kGroups; ++group)
        sums[row] = multiply_add(weights[group], load_lanes(p.x + k + group * kLanes), sums[row]);
    }
  }
  for (int row = 0; row < rows; ++row) put(p, 0, j + row, sums[row]);
}

// `tile` rows of x from row i and `rows` decoded rows of the weight from row j.
template <int tile, int rows>
void multiply_decoded(const BlocksProduct& p, const float* decoded, int64_t i, int64_t j) {
  Lanes sums[tile][rows] = {};
  for (int64_t k = 0; k < p.k; k += kLanes) {
    for (int row = 0; row < rows; ++row) {
      const Lanes weights = load_lanes(decoded + row * p.k + k);
      for (int t = 0; t < tile; ++t)
        sums[t][row] = multiply_add(weights, load_lanes(p.x + (i + t) * p.k + k), sums[t][row]);
    }
  }
  for (int t = 0; t < tile; ++t) {
    for (int row = 0; row < rows; ++row) put(p, i + t, j + row, sums[t][row]);
  }
}

template <class Blocks>
void decode_row(const uint8_t* blocks, int64_t elements, float* to) {
  for (int64_t k = 0; k < elements; k += Blocks::kElements, blocks += Blocks::kBytes) {
    Lanes weights[Blocks::kElements / kLanes];
    Blocks::decode(blocks, weights);
    std::memcpy(to + k, weights, sizeof weights);
  }
}

template <class Blocks, int rows>
void multiply_rows(const BlocksProduct& p, float* decoded, int64_t j) {
  for (int row = 0; row < rows; ++row)
    decode_row<Blocks>(p.weight + (j + row) * p.row_bytes, p.k, decoded + row * p.k);
  int64_t i = 0;
  for (; i + kTile <= p.m; i += kTile) multiply_decoded<kTile, rows>(p, decoded, i, j);
  for (; i < p.m; ++i) multiply_decoded<1, rows>(p, decoded, i, j);
}

template <class Blocks>
tenon_status multiply(tenon_ctx* ctx, const BlocksProduct& p, tenon_err* err) {
  const int64_t tasks = (p.n + kRows - 1) / kRows, work = kRows * p.k * (p.m + 1);
  const int64_t bytes = p.m == 1 ? 0 : kRows * p.k * static_cast<int64_t>(sizeof(float));
  return parallel_for_with_scratch(ctx, tasks, work, bytes, err, [&](int64_t task, void* memory) {
    float* decoded = static_cast<float*>(memory);
    int64_t j = task * kRows;
    const bool whole = j + kRows <= p.n;
    if (p.m == 1 && whole) return multiply_one<Blocks, kRows>(p, j);
    if (whole) return multiply_rows<Blocks, kRows>(p, decoded, j);
    for (; j < p.n; ++j) {
      if (p.m == 1)
        multiply_one<Blocks, 1>(p, j);
      else
        multiply_rows<Blocks, 1>(p, decoded, j);
    }
  });
}

}  // namespace

tenon_status linear_blocks(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                           const char* format, uint64_t format_length, const tenon_tensor* bias,
                           const char* activations, uint64_t activations_length, tenon_tensor* out,
                           tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  if (is_low_precision(x->dtype))
    return run_as_float32(linear_blocks, ctx, err, x, weight, format, format_length, bias,
                          activations, activations_length, out);
  const int64_t n = weight->shape[0];
  const BlocksProduct p{.x = data_of<float>(x),
                        .weight = data_of<uint8_t>(weight),
                        .bias = bias ? data_of<float>(bias) : nullptr,
                        .out = data_of<float>(out),
                        .m = out->numel / n,
                        .n = n,
                        .k = x->shape[x->ndim - 1],
                        .row_bytes = weight->shape[1]};
  if (std::string_view(activations, activations_length) == "int8")
    return multiply_blocks_int8(ctx, p, {format, format_length}, err);
  tenon_status status = TENON_OK;
  with_block_format({format, format_length},
                    [&]<class Blocks>(Blocks) { status = multiply<Blocks>(ctx, p, err); });
  return status;
}
namespace {

TENON_BOX_linear_blocks(linear_blocks_boxed, linear_blocks);

tenon_status dequantize_blocks(tenon_ctx*, const tenon_tensor* blocks, const char* format,
                               uint64_t format_length, tenon_tensor* out, tenon_err*) {
  const auto* from = data_of<uint8_t>(blocks);
  auto* to = data_of<float>(out);
  with_block_format({format, format_length}, [&]<class Blocks>(Blocks) {
    parallel(out->numel / Blocks::kElements, Blocks::kElements, [&](int64_t begin, int64_t end) {
      decode_row<Blocks>(from + begin * Blocks::kBytes, (end - begin) * Blocks::kElements,
                         to + begin * Blocks::kElements);
    });
  });
  return TENON_OK;
}
TENON_BOX_dequantize_blocks(dequantize_blocks_boxed, dequantize_blocks);

constexpr uint64_t kWidenedOrFloat32 = kFloats & ~dtype_bit(TENON_DTYPE_F64);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_dequantize_blocks(dequantize_blocks, nullptr, dtype_bit(TENON_DTYPE_U8), 0, 0),
    TENON_KERNEL_linear_blocks(linear_blocks, nullptr, kWidenedOrFloat32, 0, 0)};

}  // namespace

KernelList linear_blocks_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
