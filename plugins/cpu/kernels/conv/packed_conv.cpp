// SPDX-License-Identifier: Apache-2.0
#include "conv/packed_conv.hpp"

#include "conv/depthwise_forward.hpp"
#include "conv/nchw16c.hpp"
#include "conv/packed_filters.hpp"
#include "conv/pointwise.hpp"
#include "conv/shapes_of.hpp"
#include "conv/winograd.hpp"
#include "gemm/in_tiles.hpp"
#include "trace.hpp"

#include <cmath>
#include <vector>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The algorithms of conv2d() for which packing or joining pays, chosen as there.
enum class PackedAlgorithm : uint8_t { kNone, kDepthwise, kPointwise, kWinograd, kBlocks };

PackedAlgorithm algorithm_of(const ConvDescription& d, const ConvShapes& s) {
  if (s.batch * s.filters * s.results() == 0 || s.depth() == 0) return PackedAlgorithm::kNone;
  // Of these nothing is packed.
  const bool joins = d.has_norm || d.has_residual || d.has_relu || d.has_more;
  if (s.is_depthwise()) return joins ? PackedAlgorithm::kDepthwise : PackedAlgorithm::kNone;
  if (suits_pointwise(s, TENON_DTYPE_F32)) {
    return joins ? PackedAlgorithm::kPointwise : PackedAlgorithm::kNone;
  }
  if (suits_winograd(s)) return PackedAlgorithm::kWinograd;
  return suits_blocks(s) ? PackedAlgorithm::kBlocks : PackedAlgorithm::kNone;
}

class PackedConvOfIsa final : public PackedConv {
 public:
  PackedConvOfIsa(const ConvDescription& d, const ConvConstants& constants,
                  FollowingSteps following)
      : shapes_(flattened(shapes_of(d))),
        algorithm_(algorithm_of(d, shapes_)),
        following_(std::move(following)),
        has_norm_(d.has_norm),
        has_residual_(d.has_residual),
        has_relu_(d.has_relu) {
    const int64_t filters = shapes_.filters;
    if (constants.bias) bias_.assign(constants.bias, constants.bias + filters);
    if (has_norm_) {
      center_.assign(constants.mean, constants.mean + filters);
      for (int64_t f = 0; f < filters; ++f) {  // As batch_norm_inference() does.
        const float factor = constants.factor ? constants.factor[f] : 1.0f;
        scale_.push_back(factor / std::sqrt(constants.var[f] + constants.eps));
        shift_.push_back(constants.shift ? constants.shift[f] : 0.0f);
      }
    }
    if (algorithm_ == PackedAlgorithm::kWinograd || algorithm_ == PackedAlgorithm::kBlocks) {
      packed_ = packed_filters(algorithm_ == PackedAlgorithm::kWinograd ? FilterPacking::kWinograd
                                                                        : FilterPacking::kBlocks,
                               shapes_, constants);
    }
  }

  tenon_status run(tenon_device_id device, const float* x, const float* weight,
                   const float* residual, const float* const* others, float* out,
                   tenon_err* err) const override {
    std::atomic<bool> failed = false;
    ConvEpilogue<float> epilogue;
    if (has_norm_) {
      epilogue.center = center_.data();
      epilogue.scale = scale_.data();
      epilogue.shift = shift_.data();
    }
    if (has_residual_) epilogue.residual = residual;
    epilogue.has_relu = has_relu_;
    epilogue.results = out;
    epilogue.following = following_.empty() ? nullptr : &following_;
    epilogue.others = others;
    epilogue.failed = &failed;
    const tenon_status status = run_with(device, x, weight, epilogue, out, err);
    if (status != TENON_OK || !failed.load(std::memory_order_relaxed)) return status;
    return fail(err, TENON_INTERNAL, "an elementwise kernel of float32 has refused a piece");
  }

 private:
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }

  tenon_status run_with(tenon_device_id device, const float* x, const float* weight,
                        const ConvEpilogue<float>& epilogue, float* out, tenon_err* err) const {
    RunMemory memory(device);
    const ConvEpilogue<float>* joined = epilogue.is_needed() ? &epilogue : nullptr;
    const Images images{x, TENON_DTYPE_F32, shapes_.channels * shapes_.pixels(), shapes_.pixels(),
                        1};
    switch (algorithm_) {
      case PackedAlgorithm::kWinograd: {
        trace("conv2d", "packed Winograd");
        bool finite = false;
        const tenon_status status = multiply_winograd<float>(&memory, shapes_, x, packed_->data(),
                                                             bias(), joined, out, &finite, err);
        if (status != TENON_OK || finite) return status;
        return fail(err, TENON_UNSUPPORTED,
                    "an infinity or NaN spreads over a Winograd tile; the steps keep it in its "
                    "window");
      }
      case PackedAlgorithm::kBlocks:
        trace("conv2d", "packed nChw16c");
        return multiply_blocks<float>(&memory, ConvPhases(shapes_), images, packed_->data(), joined,
                                      out, err);
      case PackedAlgorithm::kDepthwise:
        trace("conv2d", "depthwise with what follows");
        return run_forward_depthwise<float>(&memory, shapes_, images, weight, bias(), joined, out,
                                            err);
      default:
        trace("conv2d", "pointwise GEMM in tiles");
        return run_pointwise_in_tiles(&memory, images, weight, epilogue, out, err);
    }
  }

  tenon_status run_pointwise_in_tiles(RunMemory* memory, Images x, const float* weight,
                                      const ConvEpilogue<float>& epilogue, float* out,
                                      tenon_err* err) const {
    ConvShapes s = shapes_;
    if (s.is_strided_pointwise()) {
      const tenon_status status = gather_pixels<float>(memory, s, &x, err);
      if (status != TENON_OK) return status;
      s = without_stride(s);
    }
    const int64_t pixels = s.pixels(), channels = s.group_channels(), filters = s.group_filters();
    struct Tile {
      const float* bias;
      const ConvEpilogue<float>& epilogue;
      float* out;
      int64_t filters, pixels;
    } around{bias(), epilogue, out, s.filters, pixels};
    TileHooks hooks{&around, nullptr, nullptr};
    hooks.before = [](void* user, int64_t at, int64_t rows, int64_t columns) {
      const Tile& tile = *static_cast<Tile*>(user);
      for (int64_t i = 0; tile.bias && i < rows; ++i, at += tile.pixels) {
        std::fill_n(tile.out + at, columns, tile.bias[at / tile.pixels % tile.filters]);
      }
    };
    hooks.after = [](void* user, int64_t at, int64_t rows, int64_t columns) {
      const Tile& tile = *static_cast<Tile*>(user);
      const int64_t filter = at / tile.pixels % tile.filters;
      tile.epilogue.on_filters(filter, tile.out + at, {rows, tile.pixels, 1, columns, columns});
    };
    const BatchOffsets batch{2,
                             {s.batch, s.groups},
                             {0, filters * channels},
                             {x.image, channels * x.channel},
                             {s.filters * pixels, filters * pixels}};
    return gemm_in_tiles(memory, filters, pixels, channels, {weight, channels, 1},
                         {static_cast<const float*>(x.data), x.channel, x.pixel}, out, pixels,
                         bias() != nullptr, batch, hooks, err);
  }

  const ConvShapes shapes_;
  const PackedAlgorithm algorithm_;
  const FollowingSteps following_;
  const bool has_norm_, has_residual_, has_relu_;
  std::vector<float> bias_, center_, scale_, shift_;
  std::shared_ptr<const PackedConstant> packed_;
};

}  // namespace

extern const PackedConvs kPackedConvs;
const PackedConvs kPackedConvs = {
    [](const ConvDescription& d) {
      return algorithm_of(d, flattened(shapes_of(d))) != PackedAlgorithm::kNone;
    },
    [](const ConvDescription& d, const ConvConstants& constants,
       FollowingSteps following) -> std::unique_ptr<PackedConv> {
      return std::make_unique<PackedConvOfIsa>(d, constants, std::move(following));
    },
};

}  // namespace tenon::cpu::TENON_CPU_ISA
