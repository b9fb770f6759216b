// SPDX-License-Identifier: Apache-2.0
#include "conv/nhwc_conv.hpp"

#include "conv/depthwise.hpp"
#include "conv/direct.hpp"
#include "conv/nchw16c.hpp"
#include "conv/nhwc_reductions.hpp"
#include "conv/packed_filters.hpp"
#include "conv/pixel_tail.hpp"
#include "conv/pointwise.hpp"
#include "conv/shapes_of.hpp"
#include "conv/winograd_nhwc.hpp"
#include "gemm/sum_order.hpp"
#include "simd/transpose.hpp"
#include "trace.hpp"

#include <vector>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

using Vector = VectorOf<float>::type;
using Unaligned = VectorOf<float>::unaligned;
constexpr int64_t kLanes = kWidth<float>;

int64_t padded(int64_t channels) { return rounded_up<kLanes>(channels); }

int64_t row_of(int64_t channels) {
  const int64_t row = padded(channels);
  return row * static_cast<int64_t>(sizeof(float)) % 2048 == 0 ? row + kLanes : row;
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

class NhwcConvOfIsa final : public NhwcConv {
 public:
  NhwcConvOfIsa(const ConvDescription& d, const ConvConstants& constants, bool reads_planes)
      : s_(shapes_of(d)),
        algorithm_(algorithm_of(s_)),
        reads_planes_(reads_planes),
        channels_(padded(s_.channels)),
        filters_(padded(s_.filters)),
        packed_(pack(constants)) {
    if (algorithm_ == NhwcAlgorithm::kDepthwise || adds_bias_first() || !constants.bias) return;
    bias_.assign(static_cast<size_t>(filters_), 0.0f);
    std::copy_n(constants.bias, s_.filters, bias_.begin());
  }

  tenon_status run(const NhwcRun& run, tenon_err* err) const override {
    switch (algorithm_) {
      case NhwcAlgorithm::kDepthwise:
        trace("conv2d", "NHWC depthwise");
        run_depthwise(run);
        return TENON_OK;
      case NhwcAlgorithm::kTaps: {
        trace("conv2d", "NHWC taps");
        RunMemory memory(run.device);
        return run_taps(&memory, run, err);
      }
      case NhwcAlgorithm::kWinograd: {
        trace("conv2d", "NHWC Winograd");
        RunMemory memory(run.device);
        return run_winograd(&memory, run, err);
      }
      default:
        trace("conv2d", "NHWC pointwise");
        run_pointwise(run);
        return TENON_OK;
    }
  }

 private:
  bool adds_bias_first() const {
    return algorithm_ == NhwcAlgorithm::kBiasFirst || algorithm_ == NhwcAlgorithm::kTaps;
  }

  std::shared_ptr<const PackedConstant> pack(ConvConstants constants) const {
    if (algorithm_ == NhwcAlgorithm::kDepthwise) {
      return packed_filters(FilterPacking::kDepthwise, s_, constants);
    }
    if (algorithm_ == NhwcAlgorithm::kWinograd) {
      return packed_filters(FilterPacking::kWinogradLast, s_, constants);
    }
    if (!adds_bias_first()) constants.bias = nullptr;
    return packed_filters(FilterPacking::kBlocks, s_, constants);
  }

  // The tail of some neighbouring results, of the vectors from `filter` on.
  static void finish(const NhwcRun& run, int64_t pixel, int64_t pixels, int64_t filter,
                     int64_t filters) {
    if (!run.tail) return;
    float* to = run.out + pixel * run.out_row;
    const float* added = run.residual ? run.residual + pixel * run.residual_row : nullptr;
    finish_pixels(*run.tail, {to, run.out_row, added, run.residual_row, to, run.out_row, pixels},
                  filter, filters);
  }

  // Results of a tile, and what is added to them, lie far apart: the processor does not foresee them.
  static void prefetch(const NhwcRun& run, int64_t pixel, int64_t pixels, int64_t filter,
                       int64_t filters) {
    for (int64_t p = pixel; p < pixel + pixels; ++p) {
      for (int64_t f = filter; f < filter + filters; f += 64 / int64_t{sizeof(float)}) {
        __builtin_prefetch(run.out + p * run.out_row + f, 1);
        if (run.residual) __builtin_prefetch(run.residual + p * run.residual_row + f);
      }
    }
  }

  // Runs what is behind the tail for all results, in parts that a cache holds.
  void finish_all(const NhwcRun& run) const {
    if (!run.done) return;
    const int64_t all = s_.batch * s_.results();
    const int64_t some = std::max<int64_t>(1, 16384 / filters_);
    parallel((all + some - 1) / some, some * filters_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) (*run.done)(i * some, std::min(some, all - i * some));
    });
  }

  // -- tiles ------------------------------------------------------------------------------------

  // Rows of results of one image, of which neighbours are `down` elements of x apart, and columns
  // tile.left_row: from the pixel `from` on, to the result `pixel`.
  struct ResultRows {
    const float* from;
    int64_t pixel, rows, columns, down;
  };

  // Computes some rows of results for one block of filters. Rows that fill at most half of a tile
  // share one, as each tile reads all filters.
  void run_tiles(const NhwcRun& run, BlockTile<float>& tile, int64_t block,
                 const ResultRows& of) const {
    const FilterBlocks<float> blocks = blocks_of<float>(s_);
    const int64_t vectors = blocks.vectors(block), filter = block * blocks.kFilters;
    const bool has_halves = of.columns <= kBlockRows / 2;
    tile.left_half = of.down;
    tile.result_half = of.columns * run.out_row;
    for (int64_t i = 0; i < of.rows;) {
      const int64_t pixel = of.pixel + i * of.columns;
      const float* from = of.from + i * of.down;
      if (has_halves && i + 1 < of.rows) {
        tile.left = from;
        tile.results = run.out + pixel * run.out_row + filter;
        prefetch(run, pixel, 2 * of.columns, filter, vectors * kLanes);
        choose_tile_of_halves<float>(of.columns, vectors)(tile);
        finish(run, pixel, 2 * of.columns, filter, vectors * kLanes);
        i += 2;
        continue;
      }
      for_tiles(of.columns, [&](int64_t j, int64_t count) {
        tile.left = from + j * tile.left_row;
        tile.results = run.out + (pixel + j) * run.out_row + filter;
        prefetch(run, pixel + j, count, filter, vectors * kLanes);
        choose_block_tile<float>(count, vectors)(tile);
        finish(run, pixel + j, count, filter, vectors * kLanes);
      });
      ++i;
    }
  }

  BlockTile<float> tile_of(const NhwcRun& run, int64_t block, const Segments& parts,
                           int64_t pixel) const {
    alignas(64) static constexpr float kZeros[kBlockVectors * kLanes] = {};
    const FilterBlocks<float> blocks = blocks_of<float>(s_);
    const float* b = packed_->data() + blocks.at(block);
    BlockTile<float> tile{};
    tile.parts = parts;
    tile.left_row = pixel;
    tile.left_step = 1;
    tile.right = b;
    tile.start = algorithm_ == NhwcAlgorithm::kBiasLast
                     ? kZeros
                     : b + s_.depth() * blocks.vectors(block) * kLanes;
    tile.start_vector = tile.result_vector = kLanes;
    tile.added = added_from(block * blocks.kFilters);
    tile.result_row = run.out_row;
    return tile;
  }

  // The bias of the filters from `filter` on, where it is added last.
  const float* added_from(int64_t filter) const {
    return bias_.empty() ? nullptr : bias_.data() + filter;
  }

  // Where the L2 cache does not hold the filters, these are read as few times as possible.
  bool has_many_filters() const {
    return blocks_of<float>(s_).elements() * int64_t{sizeof(float)} > 1024 * 1024;
  }

  // -- one tap ----------------------------------------------------------------------------------

  // The results [first, first + count), of all filters of the blocks [begin, end).
  void multiply_pixels(const NhwcRun& run, int64_t first, int64_t count, int64_t begin,
                       int64_t end) const {
    const FilterBlocks<float> blocks = blocks_of<float>(s_);
    static constexpr int64_t kNoOffset = 0;
    const Segments all{&kNoOffset, 1, s_.channels};
    const bool strided = s_.is_strided_pointwise();
    const int64_t step = strided ? s_.stride[1] * run.x_row : run.x_row;
    for (int64_t block = begin; block < end; ++block) {
      constexpr int kTogether = 4;
      const bool whole = block + kTogether <= end && blocks.vectors(block + kTogether - 1) == 2;
      if (count == 1 && whole && !strided) {
        multiply_pixel<kTogether>(run, first, block);
        block += kTogether - 1;
        continue;
      }
      BlockTile<float> tile = tile_of(run, block, all, step);
      if (!strided) {
        run_tiles(run, tile, block, {run.x + first * run.x_row, first, 1, count, 0});
        continue;
      }
      for (int64_t p = first, last = first + count; p < last;) {
        const int64_t row = p / s_.columns, column = p % s_.columns;
        const float* from =
            run.x + ((row / s_.rows * s_.height + row % s_.rows * s_.stride[0]) * s_.width +
                     column * s_.stride[1]) *
                        run.x_row;
        const int64_t in_row = std::min(last - p, s_.columns - column);
        const int64_t rows =
            in_row < s_.columns ? 1 : std::min((last - p) / s_.columns, s_.rows - row % s_.rows);
        run_tiles(run, tile, block, {from, p, rows, in_row, s_.stride[0] * s_.width * run.x_row});
        p += rows * in_row;
      }
    }
  }

  // A single pixel: several blocks of filters side by side hide the latency of an addition.
  template <int Blocks>
  void multiply_pixel(const NhwcRun& run, int64_t pixel, int64_t block) const {
    constexpr int kVectors = Blocks * kBlockVectors;
    const FilterBlocks<float> blocks = blocks_of<float>(s_);
    const float *b[Blocks], *x = run.x + pixel * run.x_row;
    float* out = run.out + pixel * run.out_row;
    Vector acc[kVectors];
    const bool last = algorithm_ == NhwcAlgorithm::kBiasLast;
    for (int i = 0; i < Blocks; ++i) {
      b[i] = packed_->data() + blocks.at(block + i);
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
    const int64_t first = block * blocks.kFilters;
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = first + v * kLanes;
      if (const float* added = added_from(at)) {
        acc[v] += *reinterpret_cast<const Unaligned*>(added);
      }
      *reinterpret_cast<Unaligned*>(out + at) = acc[v];
    }
    finish(run, pixel, 1, first, kVectors * kLanes);
  }

  void run_pointwise(const NhwcRun& run) const {
    constexpr int64_t kBytes = 24 * 1024;        // Of results, which the L1 cache holds.
    constexpr int64_t kBytesOfFew = 512 * 1024;  // Of pixels that are read for many filters.
    const int64_t all = s_.batch * s_.results(), count = blocks_of<float>(s_).count();
    const int64_t threads = host->thread_count(), size = sizeof(float);
    const bool many = has_many_filters();
    const bool divides_filters = threads > 1 && count > 1 && (many || all < threads * kBlockRows);
    const int64_t fit =
        std::max<int64_t>(1, many ? kBytesOfFew / (channels_ * size) : kBytes / (filters_ * size));
    const int64_t share = divides_filters ? all : (all + threads - 1) / threads;
    // As many items as there are threads, or a multiple of that.
    const int64_t of_share = (share + fit - 1) / fit;
    const int64_t some = rounded_up<kBlockRows>((share + of_share - 1) / of_share);
    const int64_t items = (all + some - 1) / some, work = s_.channels * filters_ / kLanes;
    const auto item = [&](int64_t i, int64_t begin, int64_t end) {
      multiply_pixels(run, i * some, std::min(some, all - i * some), begin, end);
    };
    if (divides_filters) {
      parallel(count, all * work / count, [&](int64_t begin, int64_t end) {
        for (int64_t i = 0; i < items; ++i) item(i, begin, end);
      });
      return finish_all(run);
    }
    parallel(items, some * work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        item(i, 0, count);
        if (run.done) (*run.done)(i * some, std::min(some, all - i * some));
      }
    });
  }

  // -- several taps -----------------------------------------------------------------------------

  tenon_status run_taps(RunMemory* memory, const NhwcRun& run, tenon_err* err) const {
    using Parts = BlockParts<float>;
    // Each part reads all weights: where these are larger than the images, parts are few, and
    // threads divide the filters.
    const bool has_large_weights = s_.channels * s_.batch * s_.pixels() < s_.depth() * s_.filters;
    const Parts parts(s_, has_large_weights ? 1 : 2 * host->thread_count(), Parts::kFilters,
                      has_large_weights ? Parts::kBytesOfFew : Parts::kBytes);
    const FilterShares shares(has_large_weights ? parts.count : INT64_MAX, s_.filters,
                              Parts::kFilters);
    const Images images =
        reads_planes_ ? Images{run.x, TENON_DTYPE_F32, s_.channels * s_.pixels(), s_.pixels(), 1}
                      : Images{run.x, TENON_DTYPE_F32, run.x_row * s_.pixels(), 1, run.x_row};
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < parts.segments(s_); ++i) offsets.push_back(parts.segment(s_, i));
    const auto segments = static_cast<int64_t>(offsets.size());
    const Segments taps{offsets.data(), segments, s_.depth() / segments};
    const tenon_status status = parallel_for_with_scratch(
        memory, parts.count * shares.count(),
        parts.results(s_) * s_.depth() * (shares.each() / kLanes),
        parts.elements() * int64_t{sizeof(float)}, err, [&](int64_t item, void* own) {
          const auto part = parts.at(s_, item % parts.count);
          const int64_t share = item / parts.count;
          auto* image = static_cast<float*>(own);
          for (int64_t n = 0; n < part.images; ++n) {
            for (int64_t y = 0; y < parts.rows_seen(s_, part.rows); ++y) {
              fill_row(s_, parts, part, images, 0, n, y, image);
            }
          }
          const int64_t end = (shares.end(share) + Parts::kFilters - 1) / Parts::kFilters;
          for (int64_t block = shares.begin(share) / Parts::kFilters; block < end; ++block) {
            BlockTile<float> tile = tile_of(run, block, taps, s_.stride[1] * parts.pixel);
            for (int64_t n = 0; n < part.images; ++n) {
              run_tiles(
                  run, tile, block,
                  {image + n * parts.image, (part.first + n) * s_.results() + part.top * s_.columns,
                   part.rows, s_.columns, s_.stride[0] * parts.row});
            }
          }
          if (shares.count() > 1 || !run.done) return;
          (*run.done)(part.first * s_.results() + part.top * s_.columns,
                      part.images * part.rows * s_.columns);
        });
    if (status == TENON_OK && shares.count() > 1) finish_all(run);
    return status;
  }

  // -- depthwise --------------------------------------------------------------------------------

  void run_depthwise(const NhwcRun& run) const {
    constexpr int64_t kTogether = 16;  // Blocks of channels, of which the L1 cache holds the rows.
    constexpr int64_t kRowBytes = 32 * 1024;
    std::vector<int64_t> offsets;
    for (int64_t t = 0; t < s_.taps(); ++t) {
      const int64_t u = t / s_.kernel[1], v = t % s_.kernel[1];
      offsets.push_back((u * s_.dilation[0] * s_.width + v * s_.dilation[1]) * run.x_row);
    }
    const int64_t row = s_.columns * filters_;
    const int64_t rows =
        std::clamp<int64_t>(kRowBytes / (row * int64_t{sizeof(float)}), 1, s_.rows);
    const int64_t bands = (s_.rows + rows - 1) / rows, blocks = channels_ / kLanes;
    parallel(s_.batch * bands, rows * row / kLanes * s_.taps(), [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t n = item / bands, top = item % bands * rows;
        const int64_t some = std::min(rows, s_.rows - top);
        for (int64_t i = top; i < top + some; ++i) {
          const int64_t pixel = n * s_.results() + i * s_.columns;
          float* to = run.out + pixel * run.out_row;
          for (int64_t block = 0; block < blocks; block += kTogether) {
            const int64_t at = block * kLanes, count = std::min(kTogether, blocks - block);
            const PixelsInPlace<float> pixels{run.x + n * s_.pixels() * run.x_row + at, run.x_row,
                                              offsets.data()};
            const float* weights = packed_->data() + at * (s_.taps() + 1);
            depthwise_row_in_place(s_, pixels, i, count, weights, to + at, run.out_row,
                                   [](int64_t) {});
            finish(run, pixel, s_.columns, at, count * kLanes);
          }
        }
        if (run.done) (*run.done)(n * s_.results() + top * s_.columns, some * s_.columns);
      }
    });
  }

  // -- Winograd ---------------------------------------------------------------------------------

  tenon_status run_winograd(RunMemory* memory, const NhwcRun& run, tenon_err* err) const {
    bool finite = false;
    const tenon_status status = multiply_winograd_last<float>(
        memory, s_, FilteredBlocks<float>(s_), {run.x_row, run.out_row}, run.x, packed_->data(),
        added_from(0), run.out, &finite, err,
        [&](int64_t pixel, int64_t pixels, int64_t filter, int64_t filters) {
          finish(run, pixel, pixels, filter, filters);
        });
    if (status != TENON_OK) return status;
    if (!finite) {
      return fail(
          err, TENON_UNSUPPORTED,
          "an infinity or NaN spreads over a Winograd tile; the steps keep it in its window");
    }
    finish_all(run);
    return TENON_OK;
  }

  const ConvShapes s_;
  const NhwcAlgorithm algorithm_;
  const bool reads_planes_;
  const int64_t channels_, filters_;  // Padded.
  const std::shared_ptr<const PackedConstant> packed_;
  std::vector<float> bias_;  // Padded, where it is not among the packed filters.
};

void from_planes(const float* planes, int64_t channels, int64_t pixels, float* to, int64_t row) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    gather_channels(planes + c * pixels, pixels, std::min(kLanes, channels - c), pixels, to + c,
                    row);
  }
}

void to_planes(const float* from, int64_t row, int64_t channels, int64_t pixels, float* planes) {
  constexpr int64_t size = sizeof(float);
  transpose_elements(size, reinterpret_cast<const char*>(from), row * size,
                     reinterpret_cast<char*>(planes), pixels * size, pixels, channels);
}

// A few pixels at a time, which the L1 cache holds.
void finish_rows(const PixelTail& tail, const PixelRows& all, int64_t channels) {
  constexpr int64_t kTogether = 8;
  for (int64_t p = 0; p < all.pixels; p += kTogether) {
    const float* added = all.residual ? all.residual + p * all.residual_row : nullptr;
    finish_pixels(tail,
                  {all.from + p * all.from_row, all.from_row, added, all.residual_row,
                   all.to + p * all.to_row, all.to_row, std::min(kTogether, all.pixels - p)},
                  0, padded(channels));
  }
}

}  // namespace

extern const NhwcFunctions kNhwcFunctions;
const NhwcFunctions kNhwcFunctions = {
    kLanes,
    row_of,
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
    finish_rows,
    mean_of_pixels,
    maximum_of_windows,
    average_of_windows,
};

}  // namespace tenon::cpu::TENON_CPU_ISA
