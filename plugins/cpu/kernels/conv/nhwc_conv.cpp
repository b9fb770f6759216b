// SPDX-License-Identifier: Apache-2.0
#include "conv/nhwc_conv.hpp"

#include "conv/depthwise.hpp"
#include "conv/direct.hpp"
#include "conv/pixel_tile.hpp"
#include "conv/pointwise.hpp"
#include "conv/winograd_nhwc.hpp"
#include "gemm/sum_order.hpp"
#include "pool/nhwc.hpp"
#include "reduce/rows.hpp"
#include "simd/transpose.hpp"
#include "trace.hpp"

#include <vector>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

using Vector = VectorOf<float>::type;
using Unaligned = VectorOf<float>::unaligned;
constexpr int64_t kLanes = kWidth<float>;

int64_t padded(int64_t channels) { return rounded_up<kLanes>(channels); }

ConvShapes shapes_of(const ConvDescription& d) {
  ConvShapes s;
  s.batch = d.image[0];
  s.channels = d.image[1];
  s.height = d.image[2];
  s.width = d.image[3];
  s.filters = d.weight[0];
  s.rows = d.result[2];
  s.columns = d.result[3];
  s.groups = d.groups;
  for (int axis = 0; axis < 2; ++axis) {
    s.kernel[axis] = d.weight[2 + axis];
    s.stride[axis] = d.stride[axis];
    s.padding[axis] = d.padding[axis];
    s.dilation[axis] = d.dilation[axis];
  }
  return s;
}

// Algorithms, by the sums that they make: those of the kernel that conv2d() would choose.
enum class NhwcAlgorithm : uint8_t {
  kNone,
  kDepthwise,  // The bias, then taps.
  kBiasLast,   // One tap: channels, then the bias, as a GEMM has them.
  kBiasFirst,  // One tap: the bias, then channels.
  kTaps,       // The bias, then taps and the channels of each.
  kWinograd,   // F(2 x 2, 3 x 3), of whole vectors of channels and filters.
};

NhwcAlgorithm algorithm_of(const ConvShapes& s) {
  if (s.batch * s.filters * s.results() == 0 || s.depth() == 0) return NhwcAlgorithm::kNone;
  if (s.is_depthwise()) {
    return s.filters == s.channels ? NhwcAlgorithm::kDepthwise : NhwcAlgorithm::kNone;
  }
  if (s.groups != 1) return NhwcAlgorithm::kNone;
  if (suits_pointwise(s, TENON_DTYPE_F32)) {
    return adds_in_one_chain(s.filters, s.results(), s.channels) ? NhwcAlgorithm::kBiasLast
                                                                 : NhwcAlgorithm::kNone;
  }
  if (suits_winograd(s)) {
    const bool is_whole = s.channels % kLanes == 0 && s.filters % kLanes == 0;
    return is_whole ? NhwcAlgorithm::kWinograd : NhwcAlgorithm::kNone;
  }
  if (suits_blocks(s)) {
    return s.sees_single_pixels() ? NhwcAlgorithm::kBiasFirst : NhwcAlgorithm::kTaps;
  }
  // The remaining ones are GEMMs by im2col.
  const bool is_gemm = s.sees_single_pixels() && !is_direct<float>(flattened(s)) &&
                       adds_im2col_in_one_chain(s.channels);
  return is_gemm ? NhwcAlgorithm::kBiasLast : NhwcAlgorithm::kNone;
}

// A vector in cache lines of its own.
class Floats {
 public:
  explicit Floats(int64_t elements)
      : data_(static_cast<float*>(::operator new (static_cast<size_t>(elements) * sizeof(float),
                                                  std::align_val_t{64}))) {}
  ~Floats() { ::operator delete (data_, std::align_val_t{64}); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  float* get() const { return data_; }

 private:
  float* data_;
};

class NhwcConvOfIsa final : public NhwcConv {
 public:
  NhwcConvOfIsa(const ConvDescription& d, const ConvConstants& constants, bool reads_planes)
      : s_(shapes_of(d)),
        algorithm_(algorithm_of(s_)),
        reads_planes_(reads_planes),
        pixel_(padded(s_.channels)),
        result_(padded(s_.filters)),
        packed_(packed_elements()) {
    if (algorithm_ == NhwcAlgorithm::kDepthwise) {
      transpose_filters(s_, constants.weight, constants.bias, packed_.get());
      for (int64_t t = 0; t < s_.taps(); ++t) {
        const int64_t u = t / s_.kernel[1], v = t % s_.kernel[1];
        offsets_.push_back((u * s_.dilation[0] * s_.width + v * s_.dilation[1]) * pixel_);
      }
      return;
    }
    const bool first =
        algorithm_ == NhwcAlgorithm::kBiasFirst || algorithm_ == NhwcAlgorithm::kTaps;
    if (!first && constants.bias) {
      bias_.assign(static_cast<size_t>(result_), 0.0f);
      std::copy_n(constants.bias, s_.filters, bias_.begin());
    }
    if (algorithm_ == NhwcAlgorithm::kWinograd) {
      transform_weights_last(s_, FilteredBlocks<float>(s_), constants.weight, false, packed_.get());
    } else {
      pack_phases(ConvPhases(s_), constants.weight, first ? constants.bias : nullptr,
                  packed_.get());
    }
  }

  tenon_status run(tenon_device_id device, const float* x, float* out, const PixelsDone& done,
                   tenon_err* err) const override {
    switch (algorithm_) {
      case NhwcAlgorithm::kDepthwise:
        trace("conv2d", "NHWC depthwise");
        run_depthwise(x, out, done);
        return TENON_OK;
      case NhwcAlgorithm::kTaps: {
        trace("conv2d", "NHWC taps");
        RunMemory memory(device);
        return run_taps(&memory, x, out, done, err);
      }
      case NhwcAlgorithm::kWinograd: {
        trace("conv2d", "NHWC Winograd");
        RunMemory memory(device);
        return run_winograd(&memory, x, out, done, err);
      }
      default:
        trace("conv2d", "NHWC pointwise");
        run_pointwise(x, out, done);
        return TENON_OK;
    }
  }

 private:
  int64_t packed_elements() const {
    switch (algorithm_) {
      case NhwcAlgorithm::kDepthwise:
        return pixel_ * (s_.taps() + 1);
      case NhwcAlgorithm::kWinograd:
        return weight_elements_last(FilteredBlocks<float>(s_));
      default:
        return blocks_of<float>(s_).elements();
    }
  }

  // Some blocks of filters are computed for all pixels of an item; where there are few pixels and
  // many filters, threads divide these instead.
  bool divides_filters(int64_t items) const {
    return host->thread_count() > 1 && items < host->thread_count() &&
           blocks_of<float>(s_).count() > 1;
  }

  // Calls done() for all results, in parts that a cache holds.
  void finish_all(const PixelsDone& done) const {
    const int64_t all = s_.batch * s_.results();
    const int64_t some = std::max<int64_t>(1, 16384 / result_);
    parallel((all + some - 1) / some, some * result_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) done(i * some, std::min(some, all - i * some));
    });
  }

  // -- one tap ----------------------------------------------------------------------------------

  // The results [first, first + count), of all filters of the blocks [begin, end).
  void multiply_pixels(const float* x, int64_t first, int64_t count, int64_t begin, int64_t end,
                       float* out) const {
    const FilterBlocks<float> blocks = blocks_of<float>(s_);
    alignas(64) static constexpr float kZeros[kBlockVectors * kLanes] = {};
    static constexpr int64_t kNoOffset = 0;
    const Segments all{&kNoOffset, 1, s_.channels};
    const bool strided = s_.is_strided_pointwise();
    const int64_t step = strided ? s_.stride[1] * pixel_ : pixel_;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t vectors = blocks.vectors(block);
      constexpr int kTogether = 4;
      const bool whole = block + kTogether <= end && blocks.vectors(block + kTogether - 1) == 2;
      if (count == 1 && whole) {
        multiply_pixel<kTogether>(x + first * pixel_, block, out + first * result_);
        block += kTogether - 1;
        continue;
      }
      const float* b = packed_.get() + blocks.at(block);
      const float* bias = b + s_.depth() * vectors * kLanes;
      PixelTile tile{all,
                     x,
                     step,
                     b,
                     algorithm_ == NhwcAlgorithm::kBiasLast ? kZeros : bias,
                     added_from(block * blocks.kFilters),
                     out,
                     result_};
      for (int64_t p = first; p < first + count;) {
        int64_t length = first + count - p, from = p;
        if (strided) {
          const int64_t row = p / s_.columns, column = p % s_.columns;
          length = std::min(length, s_.columns - column);
          from = (row / s_.rows * s_.height + row % s_.rows * s_.stride[0]) * s_.width +
                 column * s_.stride[1];
        }
        float* to = out + p * result_ + block * blocks.kFilters;
        for_tiles(length, [&](int64_t j, int64_t some) {
          tile.pixels = x + from * pixel_ + j * step;
          tile.results = to + j * result_;
          choose_pixel_tile(some, vectors)(tile);
        });
        p += length;
      }
    }
  }

  // A single pixel: several blocks of filters side by side hide the latency of an addition.
  template <int Blocks>
  void multiply_pixel(const float* x, int64_t block, float* out) const {
    constexpr int kVectors = Blocks * kBlockVectors;
    const FilterBlocks<float> blocks = blocks_of<float>(s_);
    const float* b[Blocks];
    Vector acc[kVectors];
    const bool last = algorithm_ == NhwcAlgorithm::kBiasLast;
    for (int i = 0; i < Blocks; ++i) {
      b[i] = packed_.get() + blocks.at(block + i);
      const float* bias = b[i] + s_.depth() * kBlockVectors * kLanes;
      for (int v = 0; v < kBlockVectors; ++v) {
        acc[i * kBlockVectors + v] =
            last ? Vector{} : *reinterpret_cast<const Vector*>(bias + v * kLanes);
      }
    }
    for (int64_t k = 0; k < s_.channels; ++k) {
#pragma GCC unroll 8
      for (int i = 0; i < Blocks; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < kBlockVectors; ++v) {
          acc[i * kBlockVectors + v] +=
              x[k] * *reinterpret_cast<const Vector*>(b[i] + (k * kBlockVectors + v) * kLanes);
        }
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = block * blocks.kFilters + v * kLanes;
      if (const float* added = added_from(at)) {
        acc[v] += *reinterpret_cast<const Unaligned*>(added);
      }
      *reinterpret_cast<Vector*>(out + at) = acc[v];
    }
  }

  // The bias of the filters from `filter` on, where it is added last.
  const float* added_from(int64_t filter) const {
    return bias_.empty() ? nullptr : bias_.data() + filter;
  }

  void run_pointwise(const float* x, float* out, const PixelsDone& done) const {
    constexpr int64_t kBytes = 256 * 1024;  // Of pixels and results, which the L2 cache holds.
    const int64_t all = s_.batch * s_.results(), count = blocks_of<float>(s_).count();
    const int64_t fit = kBytes / ((pixel_ + result_) * int64_t{sizeof(float)});
    const int64_t share = (all + host->thread_count() - 1) / host->thread_count();
    const int64_t some = rounded_up<kBlockRows>(std::max<int64_t>(1, std::min(fit, share)));
    const int64_t items = (all + some - 1) / some, work = s_.channels * result_ / kLanes;
    if (divides_filters(items)) {
      parallel(count, all * work / count,
               [&](int64_t begin, int64_t end) { multiply_pixels(x, 0, all, begin, end, out); });
      return finish_all(done);
    }
    parallel(items, some * work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i * some, pixels = std::min(some, all - first);
        multiply_pixels(x, first, pixels, 0, count, out);
        done(first, pixels);
      }
    });
  }

  // -- several taps -----------------------------------------------------------------------------

  tenon_status run_taps(RunMemory* memory, const float* x, float* out, const PixelsDone& done,
                        tenon_err* err) const {
    const FilterBlocks<float> blocks = blocks_of<float>(s_);
    // Each part reads all weights: where these are larger than the images, parts are few.
    const bool has_large_weights = s_.channels * s_.batch * s_.pixels() < s_.depth() * s_.filters;
    const BlockParts<float> parts(s_, has_large_weights ? 1 : 2 * host->thread_count(),
                                  BlockParts<float>::kFilters);
    const Images images =
        reads_planes_ ? Images{x, TENON_DTYPE_F32, s_.channels * s_.pixels(), s_.pixels(), 1}
                      : Images{x, TENON_DTYPE_F32, pixel_ * s_.pixels(), 1, pixel_};
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < parts.segments(s_); ++i) offsets.push_back(parts.segment(s_, i));
    const auto segments = static_cast<int64_t>(offsets.size());
    const Segments taps{offsets.data(), segments, s_.depth() / segments};
    const bool divides = divides_filters(parts.count);
    const int64_t shares = divides ? blocks.count() : 1;
    const tenon_status status = parallel_for_with_scratch(
        memory, parts.count * shares, parts.results(s_) * s_.depth() * (result_ / kLanes) / shares,
        parts.elements() * int64_t{sizeof(float)}, err, [&](int64_t item, void* own) {
          const auto part = parts.at(s_, item / shares);
          auto* image = static_cast<float*>(own);
          for (int64_t n = 0; n < part.images; ++n) {
            for (int64_t y = 0; y < parts.rows_seen(s_, part.rows); ++y) {
              fill_row(s_, parts, part, images, 0, n, y, image);
            }
          }
          const int64_t begin = divides ? item % shares : 0;
          for (int64_t block = begin; block < (divides ? begin + 1 : blocks.count()); ++block) {
            multiply_part(parts, part, taps, image, block, out);
          }
          if (divides) return;
          const int64_t first = part.first * s_.results() + part.top * s_.columns;
          done(first, part.images * part.rows * s_.columns);
        });
    if (status == TENON_OK && divides) finish_all(done);
    return status;
  }

  void multiply_part(const BlockParts<float>& parts, const BlockParts<float>::Part& part,
                     const Segments& taps, const float* image, int64_t block, float* out) const {
    const FilterBlocks<float> blocks = blocks_of<float>(s_);
    const int64_t vectors = blocks.vectors(block);
    const float* b = packed_.get() + blocks.at(block);
    const int64_t step = s_.stride[1] * parts.pixel;
    PixelTile tile{taps, image, step, b, b + s_.depth() * vectors * kLanes, nullptr, out, result_};
    for (int64_t i = 0; i < part.images * part.rows; ++i) {
      const int64_t n = i / part.rows, y = i % part.rows;
      const float* from = image + n * parts.image + y * s_.stride[0] * parts.row;
      float* to = out + block * blocks.kFilters +
                  ((part.first + n) * s_.results() + (part.top + y) * s_.columns) * result_;
      for_tiles(s_.columns, [&](int64_t j, int64_t count) {
        tile.pixels = from + j * step;
        tile.results = to + j * result_;
        choose_pixel_tile(count, vectors)(tile);
      });
    }
  }

  // -- depthwise --------------------------------------------------------------------------------

  void run_depthwise(const float* x, float* out, const PixelsDone& done) const {
    constexpr int64_t kTogether = 16;  // Blocks of channels, of which the L1 cache holds the rows.
    constexpr int64_t kRowBytes = 32 * 1024;
    const int64_t row = s_.columns * result_;
    const int64_t rows =
        std::clamp<int64_t>(kRowBytes / (row * int64_t{sizeof(float)}), 1, s_.rows);
    const int64_t bands = (s_.rows + rows - 1) / rows, blocks = pixel_ / kLanes;
    parallel(s_.batch * bands, rows * row / kLanes * s_.taps(), [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t n = item / bands, top = item % bands * rows;
        const int64_t some = std::min(rows, s_.rows - top);
        for (int64_t i = top; i < top + some; ++i) {
          float* to = out + (n * s_.results() + i * s_.columns) * result_;
          for (int64_t block = 0; block < blocks; block += kTogether) {
            const int64_t at = block * kLanes, count = std::min(kTogether, blocks - block);
            const PixelsInPlace<float> pixels{x + n * s_.pixels() * pixel_ + at, pixel_,
                                              offsets_.data()};
            const float* weights = packed_.get() + at * (s_.taps() + 1);
            depthwise_row_in_place(s_, pixels, i, count, weights, to + at, result_, [](int64_t) {});
          }
        }
        done(n * s_.results() + top * s_.columns, some * s_.columns);
      }
    });
  }

  // -- Winograd ---------------------------------------------------------------------------------

  tenon_status run_winograd(RunMemory* memory, const float* x, float* out, const PixelsDone& done,
                            tenon_err* err) const {
    bool finite = false;
    const tenon_status status = multiply_winograd_last<float>(
        memory, s_, FilteredBlocks<float>(s_), x, packed_.get(), added_from(0), out, &finite, err);
    if (status != TENON_OK) return status;
    if (!finite) {
      return fail(
          err, TENON_UNSUPPORTED,
          "an infinity or NaN spreads over a Winograd tile; the steps keep it in its window");
    }
    finish_all(done);
    return TENON_OK;
  }

  const ConvShapes s_;
  const NhwcAlgorithm algorithm_;
  const bool reads_planes_;
  const int64_t pixel_, result_;  // Elements of a pixel, and of a result.
  const Floats packed_;
  std::vector<int64_t> offsets_;  // Of the taps of a depthwise convolution.
  std::vector<float> bias_;       // Padded, where it is not among the packed filters.
};

void from_planes(const float* planes, int64_t channels, int64_t pixels, float* to) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    gather_channels(planes + c * pixels, pixels, std::min(kLanes, channels - c), pixels, to + c,
                    padded(channels));
  }
}

void to_planes(const float* from, int64_t channels, int64_t pixels, float* planes) {
  constexpr int64_t size = sizeof(float);
  transpose_elements(size, reinterpret_cast<const char*>(from), padded(channels) * size,
                     reinterpret_cast<char*>(planes), pixels * size, pixels, channels);
}

void norm(float* x, int64_t pixels, int64_t row, const float* center, const float* scale,
          const float* shift) {
  for (int64_t p = 0; p < pixels; ++p, x += row) {
    for (int64_t c = 0; c < row; ++c) x[c] = (x[c] - center[c]) * scale[c] + shift[c];
  }
}

// The sum of n pixels of a vector of channels, in the order of reduce_row() (reduce/rows.hpp).
template <int kAccumulators>
Vector sum_of_pixels(const float* x, int64_t row, int64_t n) {
  const auto value = [&](int64_t i) {
    return Vector(*reinterpret_cast<const Unaligned*>(x + i * row));
  };
  const auto add = [](Vector a, Vector b) { return a + b; };
  Vector acc[kAccumulators];
  for (int l = 0; l < kAccumulators; ++l) acc[l] = value(l);
  const int64_t end = run_two_streams<kAccumulators, kLongRow<kAccumulators, float>>(
      kAccumulators, n, [&](int64_t i) {
        for (int l = 0; l < kAccumulators; ++l) acc[l] += value(i + l);
      });
  reduce_tail<kAccumulators / 2>(acc, end, n, value, add);
  return reduce_pairwise<kAccumulators>(acc, add);
}

Vector sum_of_pixels(const float* x, int64_t row, int64_t n) {
  constexpr int wide = kRowAccumulators<float>, narrow = std::max(wide / 4, 4);
  if (n >= 12 * wide) return sum_of_pixels<wide>(x, row, n);
  if (n >= narrow) return sum_of_pixels<narrow>(x, row, n);
  Vector sum = *reinterpret_cast<const Unaligned*>(x);
  for (int64_t i = 1; i < n; ++i) sum += *reinterpret_cast<const Unaligned*>(x + i * row);
  return sum;
}

void mean(const float* x, int64_t row, int64_t pixels, float* to) {
  constexpr int64_t kBlock = 4096;  // Of a plane that is added up in parts (reduce/reduction.cpp).
  parallel(row / kLanes, pixels, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin * kLanes; c < end * kLanes; c += kLanes) {
      Vector sum = sum_of_pixels(x + c, row, std::min(kBlock, pixels));
      for (int64_t i = kBlock; i < pixels; i += kBlock) {
        sum += sum_of_pixels(x + i * row + c, row, std::min(kBlock, pixels - i));
      }
      *reinterpret_cast<Unaligned*>(to + c) = sum / static_cast<float>(pixels);
    }
  });
}

tenon_status maximum(tenon_device_id device, const PoolDescription& d, int64_t images, int64_t row,
                     const float* x, float* out, tenon_err* err) {
  const Window w{d.image[0],
                 d.image[1],
                 d.result[0],
                 d.result[1],
                 {d.kernel[0], d.kernel[1]},
                 {d.stride[0], d.stride[1]},
                 {d.padding[0], d.padding[1]},
                 {d.dilation[0], d.dilation[1]}};
  RunMemory memory(device);
  return NhwcWindows<float>(w, images, row).maximum(&memory, x, out, err);
}

}  // namespace

extern const NhwcFunctions kNhwcFunctions;
const NhwcFunctions kNhwcFunctions = {
    kLanes,
    [](const ConvDescription& d) {
      switch (algorithm_of(shapes_of(d))) {
        case NhwcAlgorithm::kNone:
          return NhwcInput::kNone;
        case NhwcAlgorithm::kTaps:
          return NhwcInput::kEither;
        default:
          return NhwcInput::kPixels;
      }
    },
    [](const ConvDescription& d, const ConvConstants& constants,
       bool reads_planes) -> std::unique_ptr<NhwcConv> {
      return std::make_unique<NhwcConvOfIsa>(d, constants, reads_planes);
    },
    from_planes,
    to_planes,
    norm,
    mean,
    maximum,
};

}  // namespace tenon::cpu::TENON_CPU_ISA
