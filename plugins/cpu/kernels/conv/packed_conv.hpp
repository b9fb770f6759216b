// SPDX-License-Identifier: Apache-2.0
// Convolutions whose filters do not change: these are packed once, and what follows a convolution
// in a network is computed with it. Executables of the device run them (runtime/subgraph.cpp).
#pragma once

#include "conv/following_steps.hpp"

#include <tenon/abi.h>

#include <cstdint>
#include <memory>

namespace tenon::cpu {

// A conv2d of float32 over dense NCHW images, and what follows.
struct ConvDescription {
  int64_t image[4];   // [N, C, H, W]
  int64_t weight[4];  // [O, C / groups, KH, KW]
  int64_t result[4];  // [N, O, Y, X]
  int64_t stride[2], padding[2], dilation[2];
  int64_t groups;
  bool has_norm, has_residual, has_relu;
  bool has_more;  // Elementwise steps behind these.
};

// Constants of a convolution, read while it is packed. NULL: there is none.
struct ConvConstants {
  const float *weight, *bias;
  const float *mean, *var, *factor, *shift;  // of batch_norm_inference
  float eps;
  // How often the weight and the bias were written: packed filters are shared among convolutions
  // that have them from the same memory in the same version.
  uint32_t weight_version, bias_version;
};

class PackedConv {
 public:
  virtual ~PackedConv() = default;
  // Results have the bits of the kernels for single steps. `weight` is what was packed: some
  // algorithms read it in place. TENON_UNSUPPORTED: with these elements of x the steps have to run
  // one by one. Any thread, several at once.
  // `others`: what `following` reads beside results.
  virtual tenon_status run(tenon_device_id device, const float* x, const float* weight,
                           const float* residual, const float* const* others, float* out,
                           tenon_err* err) const = 0;
};

// The functions of one instruction set.
struct PackedConvs {
  // Whether packing or joining pays.
  bool (*suits)(const ConvDescription&);
  // For descriptions that suit. Throws std::bad_alloc.
  std::unique_ptr<PackedConv> (*pack)(const ConvDescription&, const ConvConstants&,
                                      FollowingSteps following);
};

}  // namespace tenon::cpu
