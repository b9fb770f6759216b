// SPDX-License-Identifier: Apache-2.0
// The operands of attention and of its gradient, as kernels on tensor cores see them.
#pragma once

#include <tenon/abi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernels/device_programs.hpp"

namespace gpu::kernels {

constexpr int64_t kAttentionRows = 128;  // ROWS and THREADS of attention_rows.cu
constexpr uint32_t kAttentionThreads = 256;
constexpr int32_t kAttentionScore = 50;

// Structures of that file: matrices lie along up to three axes, [outer, middle, inner].
struct MatrixCounts {
  int middle = 1, inner = 1;
};
struct RowStrides {  // in elements
  int64_t outer = 0, middle = 0, inner = 0, row = 0;
};
struct MaskStrides {  // of attention.cu; 0 where the mask is broadcast
  int64_t outer = 0, middle = 0, inner = 0, row = 0, key = 0;
};
enum class Mask { kNone, kHides, kAdded };

struct AttentionOperands {
  static constexpr size_t kMax = 5;
  bool is_bfloat16 = false, causal = false;
  float scale = 1;
  int rows = 0, keys = 0, features = 0;
  int64_t matrices = 1;
  MatrixCounts counts;
  std::array<RowStrides, kMax> strides;  // of the tensors, in order
  Mask mask = Mask::kNone;
  MaskStrides mask_strides;

  // Blocks for `length` rows of every matrix.
  std::array<uint32_t, 3> blocks(int64_t length, int64_t rows_of_block = kAttentionRows) const;
  // The definitions that all kernels want, and attention_rows.cu with what comes before it.
  std::string source() const;
  // Tells the programs of `source` from each other; less than 4096.
  int variant() const;
};

// How an operand reaches the kernel.
enum class Arrives { kStrided, kContiguous };

// `tensors` are query, key, value and up to two more of the query's shape, `mask` may be NULL; empty where the kernels do not take
// them.
std::optional<AttentionOperands> attention_operands(std::span<const tenon_tensor* const> tensors,
                                                    const tenon_tensor* mask, Arrives arrives,
                                                    bool causal, double scale);

constexpr tenon_kernel_def attention_kernel_def(const char* op, uint32_t traits, int32_t score,
                                                tenon_boxed_fn run,
                                                int32_t (*can_run)(const tenon_value*, uint32_t)) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = traits,
          .op = op,
          .device = nullptr,
          .schema_hash = 0,
          .dtype_mask = uint64_t{1} << TENON_DTYPE_F16 | uint64_t{1} << TENON_DTYPE_BF16,
          .score = score,
          .reserved = 0,
          .boxed = run,
          .typed = nullptr,
          .can_run = can_run};
}

// The device of a kernel's operand, if it has the instructions of mma.cu, or NULL.
tenon_device device_with_tensor_cores(const tenon_tensor* operand);

}  // namespace gpu::kernels
