// SPDX-License-Identifier: Apache-2.0
// Convolutions by constants between NHWC values, for regions of networks (runtime/region.hpp). The
// channels of a pixel are padded to whole vectors: a pixel is some registers, whatever the number of
// channels. Elements of the padding are never read into a result.
#pragma once

#include "conv/packed_conv.hpp"

#include <tenon/abi.h>

#include <cstdint>
#include <memory>

namespace tenon::cpu {

// Called as soon as all channels of some neighbouring pixels are complete, by the thread that has
// computed them. Pixels of all images are counted.
struct PixelsDone {
  void (*call)(void* user, int64_t first, int64_t count);
  void* user;
  void operator()(int64_t first, int64_t count) const { call(user, first, count); }
};

class NhwcConv {
 public:
  virtual ~NhwcConv() = default;
  // Results have the bits of the kernel for the single step. TENON_UNSUPPORTED: with these elements
  // of x the steps have to run one by one. Any thread, several at once.
  virtual tenon_status run(tenon_device_id device, const float* x, float* out,
                           const PixelsDone& done, tenon_err* err) const = 0;
};

// What a convolution reads.
enum class NhwcInput : uint8_t {
  kNone,    // It has no algorithm for NHWC values with the bits of its kernel.
  kPixels,  // NHWC values.
  kEither,  // NHWC values, or NCHW images from outside of the region.
};

// Windows of a pooling.
struct PoolDescription {
  int64_t image[2], result[2], kernel[2], stride[2], padding[2], dilation[2];
};

// The functions of one instruction set, on values of one image where they take no batch.
struct NhwcFunctions {
  int64_t width;  // Channels are padded to multiples of it.
  NhwcInput (*input)(const ConvDescription&);
  // For descriptions that have an input. Throws std::bad_alloc.
  std::unique_ptr<NhwcConv> (*pack)(const ConvDescription&, const ConvConstants&,
                                    bool reads_planes);
  void (*from_planes)(const float* planes, int64_t channels, int64_t pixels, float* to);
  void (*to_planes)(const float* from, int64_t channels, int64_t pixels, float* planes);
  // x = (x - center) * scale + shift, as batch_norm_inference() does; each is padded.
  void (*norm)(float* x, int64_t pixels, int64_t padded, const float* center, const float* scale,
               const float* shift);
  // The mean of all pixels of at most kMaxMeanPixels, as mean() has it of a plane.
  void (*mean)(const float* x, int64_t padded, int64_t pixels, float* to);
  // The largest pixel of each window, as max_pool2d() has it.
  tenon_status (*maximum)(tenon_device_id device, const PoolDescription&, int64_t images,
                          int64_t padded, const float* x, float* out, tenon_err* err);
};
inline constexpr int64_t kMaxMeanPixels = 65536;

}  // namespace tenon::cpu
