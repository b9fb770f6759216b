// SPDX-License-Identifier: Apache-2.0
// Convolutions by constants between NHWC values, for regions of networks (runtime/region.hpp). The
// channels of a pixel are padded to whole vectors: a pixel is some registers, whatever the number of
// channels. Elements of the padding are never read into a result.
#pragma once

#include "conv/packed_conv.hpp"

#include <tenon/abi.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::cpu {

// y = relu(((x - center) * scale + shift) * factor + addend + residual), of which each part may be
// missing: the bits are those of batch_norm_inference, multiply, add and relu, one after the other.
// Vectors are by channel, padded; center, scale and shift are there together.
struct PixelTail {
  std::vector<float> center, scale, shift, factor, addend;
  bool has_relu = false;
};

// Pixels before and behind a tail. `residual` is NULL if there is none; rows are elements from one
// pixel to the next.
struct PixelRows {
  const float* from;
  int64_t from_row;
  const float* residual;
  int64_t residual_row;
  float* to;
  int64_t to_row, pixels;
};

// Called as soon as all channels of some neighbouring pixels are complete, by the thread that has
// computed them. Pixels of all images are counted.
struct PixelsDone {
  void (*call)(void* user, int64_t first, int64_t count);
  void* user;
  void operator()(int64_t first, int64_t count) const { call(user, first, count); }
};

// A run of a convolution, and the tail of its results, which may be NULL.
struct NhwcRun {
  tenon_device_id device;
  const float* x;
  int64_t x_row;
  float* out;
  int64_t out_row;
  const PixelTail* tail;
  const float* residual;
  int64_t residual_row;
  const PixelsDone* done;  // NULL: nothing is behind the tail.
};

class NhwcConv {
 public:
  virtual ~NhwcConv() = default;
  // Results have the bits of the kernel for the single step. TENON_UNSUPPORTED: with these elements
  // of x the steps have to run one by one. Any thread, several at once.
  virtual tenon_status run(const NhwcRun& run, tenon_err* err) const = 0;
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
  bool counts_padding;  // Of an average: among the elements that a sum is divided by.
};

// A pooling of all images; rows are elements from one pixel to the next.
struct NhwcPool {
  PoolDescription description;
  int64_t images, channels;
  const float* x;
  int64_t x_row;
  float* out;
  int64_t out_row;
};

// The functions of one instruction set, on values of one image where they take no batch.
struct NhwcFunctions {
  int64_t width;  // Elements of a vector.
  // Elements from one pixel to the next: whole vectors, not a multiple of 2 KiB, as neighbouring
  // pixels are read together and must not share one set of the cache.
  int64_t (*row)(int64_t channels);
  NhwcInput (*input)(const ConvDescription&);
  // For descriptions that have an input. Throws std::bad_alloc.
  std::unique_ptr<NhwcConv> (*pack)(const ConvDescription&, const ConvConstants&,
                                    bool reads_planes);
  void (*from_planes)(const float* planes, int64_t channels, int64_t pixels, float* to,
                      int64_t row);
  void (*to_planes)(const float* from, int64_t row, int64_t channels, int64_t pixels,
                    float* planes);
  // The tail of some pixels of so many channels.
  void (*finish)(const PixelTail&, const PixelRows&, int64_t channels);
  // The mean of all pixels of at most kMaxMeanPixels, as mean() has it of a plane.
  void (*mean)(const float* x, int64_t row, int64_t channels, int64_t pixels, float* to);
  // The largest pixel of each window, as max_pool2d() has it, and the average, as avg_pool2d().
  void (*maximum)(const NhwcPool&);
  void (*average)(const NhwcPool&);
};
inline constexpr int64_t kMaxMeanPixels = 65536;

}  // namespace tenon::cpu
