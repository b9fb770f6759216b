// SPDX-License-Identifier: Apache-2.0
// Rows that are sorted by experts, times the weights of these: one product after another, each divided among the threads.
#include "gemm/batch_invariant.hpp"
#include "kernel.hpp"
#include "llm/linear_blocks.hpp"

#include <tenon/signatures/fused.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

int64_t count_at(const tenon_tensor* counts, int64_t i) {
  switch (counts->dtype) {
    case TENON_DTYPE_I8:
      return data_of<int8_t>(counts)[i];
    case TENON_DTYPE_U8:
      return data_of<uint8_t>(counts)[i];
    case TENON_DTYPE_I16:
      return data_of<int16_t>(counts)[i];
    case TENON_DTYPE_U16:
      return data_of<uint16_t>(counts)[i];
    case TENON_DTYPE_I32:
      return data_of<int32_t>(counts)[i];
    case TENON_DTYPE_U32:
      return data_of<uint32_t>(counts)[i];
    default:  // uint64 beyond int64 reads as negative
      return data_of<int64_t>(counts)[i];
  }
}

// `count` rows of a matrix from row `first`. `shape` has room for two numbers, which the result refers to.
tenon_tensor rows_of(const tenon_tensor* matrix, int64_t first, int64_t count, int64_t* shape) {
  tenon_tensor rows = *matrix;
  shape[0] = count;
  shape[1] = matrix->shape[1];
  rows.shape = shape;
  rows.numel = count * shape[1];
  rows.data = data_of<char>(matrix) + first * shape[1] * kDtypeSize[matrix->dtype];
  return rows;
}

tenon_status moe_linear(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* const* weights,
                        uint64_t weights_count, const tenon_tensor* counts, const char* format,
                        uint64_t format_length, const char* activations,
                        uint64_t activations_length, tenon_tensor* out, tenon_err* err) {
  const int64_t rows = x->shape[0];
  int64_t first = 0;
  for (uint64_t expert = 0; expert < weights_count; ++expert) {
    const int64_t count = count_at(counts, static_cast<int64_t>(expert));
    if (count < 0 || count > rows - first)
      return fail_format(
          err, TENON_OUT_OF_RANGE,
          "[moe_linear] expected counts that sum to the %lld rows of x, got %lld for "
          "expert %lld behind %lld rows",
          static_cast<long long>(rows), static_cast<long long>(count),
          static_cast<long long>(expert), static_cast<long long>(first));
    if (count > 0 && out->numel > 0) {
      int64_t shapes[2][2];
      const tenon_tensor given = rows_of(x, first, count, shapes[0]);
      tenon_tensor made = rows_of(out, first, count, shapes[1]);
      const tenon_status status =
          format ? linear_blocks(ctx, &given, weights[expert], format, format_length, nullptr,
                                 activations, activations_length, &made, err)
                 : linear_batch_invariant(ctx, &given, weights[expert], nullptr, &made, err);
      if (status != TENON_OK) return status;
    }
    first += count;
  }
  if (first == rows) return TENON_OK;
  return fail_format(err, TENON_OUT_OF_RANGE,
                     "[moe_linear] expected counts that sum to the %lld rows of x, got %lld",
                     static_cast<long long>(rows), static_cast<long long>(first));
}
TENON_BOX_moe_linear(moe_linear_boxed, moe_linear);

int32_t is_plain(const tenon_value* args, uint32_t) { return args[3].tag == TENON_VALUE_NONE; }

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_moe_linear(moe_linear, nullptr, kFloats & ~dtype_bit(TENON_DTYPE_F64), 0, 0),
    // Blocks are multiplied in float32.
    with_can_run(TENON_KERNEL_moe_linear(moe_linear, nullptr, dtype_bit(TENON_DTYPE_F64), 0, 0),
                 is_plain)};

}  // namespace

KernelList moe_linear_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
