// SPDX-License-Identifier: Apache-2.0
// The kernels, one list for each family, and what they share.
#pragma once

#include <tenon/unbox.h>
#include <tenon/error.hpp>

#include <vector>

#include "cache.hpp"

namespace tenon::onednn {

using KernelList = std::vector<tenon_kernel_def>;
KernelList matmul_kernels();
KernelList convolution_kernels();
KernelList pooling_kernels();
KernelList normalization_kernels();

// The first part of a program's key.
enum KernelNumber : int {
  kMatmul = 1,
  kLinear,
  kMatmulInteger,
  kConv2d,
  kConv2dInputGrad,
  kConv2dWeightGrad,
  kAvgPool2d,
  kAvgPool2dGrad,
  kSoftmaxKernel,
  kLogSoftmaxKernel,
  kLayerNorm,
  kBatchNorm
};

inline constexpr uint64_t kFloat32 = uint64_t{1} << TENON_DTYPE_F32;
inline constexpr uint64_t kBFloat16 = uint64_t{1} << TENON_DTYPE_BF16;
// float16 needs oneDNN 3.x and a processor with AVX512-FP16; elsewhere `can_run` declines it.
inline constexpr uint64_t kFloats = kFloat32 | kBFloat16 | uint64_t{1} << TENON_DTYPE_F16;

// Above the kernels of the CPU plugin: a user who names this plugin in TENON_OVERRIDES gets them.
inline constexpr int32_t kScore = 100;

inline tenon_kernel_def kernel_of(const char* op, uint64_t dtypes, uint32_t traits,
                                  tenon_boxed_fn boxed,
                                  int32_t (*can_run)(const tenon_value*, uint32_t),
                                  int32_t score = kScore) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = traits,
          .op = op,
          .device = "cpu",
          .schema_hash = 0,
          .dtype_mask = dtypes,
          .score = score,
          .reserved = 0,
          .boxed = boxed,
          .typed = nullptr,
          .can_run = can_run};
}

// A list of one or two numbers, of which one number counts for both axes.
inline void read_pair(const tenon_value& value, int64_t* pair) {
  const int64_t* numbers = tenon_arg_ints(&value);
  pair[0] = numbers[0];
  pair[1] = numbers[tenon_arg_count(&value) - 1];
}

inline bool has_elements(const tenon_tensor* tensor) { return tensor && tensor->numel > 0; }

inline void* data_of(const tenon_tensor* tensor) { return tensor->data; }

}  // namespace tenon::onednn
