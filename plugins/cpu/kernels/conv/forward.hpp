// SPDX-License-Identifier: Apache-2.0
// Forward convolution: chooses the algorithm that suits the shape; the general one is a GEMM with
// implicit im2col.
#pragma once

#include "conv/amx.hpp"
#include "conv/bfloat16.hpp"
#include "conv/depthwise_forward.hpp"
#include "conv/direct.hpp"
#include "conv/im2col.hpp"
#include "conv/nchw16c.hpp"
#include "conv/winograd_nhwc.hpp"
#include "gemm/partition.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"
#include "trace.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The dtype of the C++ type T.
template <class T>
inline constexpr int kDtypeOf = std::is_same_v<T, float> ? TENON_DTYPE_F32 : TENON_DTYPE_F64;

// Dense NCHW images.
inline Images dense_images(const void* data, int dtype, int64_t channels, int64_t pixels) {
  return {data, dtype, channels * pixels, pixels, 1};
}

// Initialises `filters` filters of n results, from the first result on, with the bias.
template <class T>
void fill_results(const Results<T>& results, int64_t filters, int64_t n, const T* bias) {
  for (int64_t j = 0; j < n;) {
    const int64_t run = std::min(n - j, results.dense_from(j));
    T* to = results.at(j);
    for (int64_t f = 0; f < filters; ++f) {
      std::fill_n(to + f * results.row, run, bias ? bias[f] : T(0));
    }
    j += run;
  }
}

// Computes out[image, group] = weight[group] * im2col(x[image, group]), with the images side by
// side. The images are NCHW unless the shapes suit nChw16c blocks; results have the same layout.
template <class T>
tenon_status run_forward(tenon_ctx* ctx, const ConvShapes& s, const Images& images, const T* weight,
                         const T* bias, T* out, tenon_err* err) {
  const T* x = static_cast<const T*>(images.data);
  if (s.is_depthwise())
    return run_forward_depthwise<T>(ctx, s, images, weight, bias, nullptr, out, err);
  if (suits_winograd(s)) {
    trace("conv2d", "Winograd");
    bool finite = false;
    const auto run = images.pixel == 1 ? run_winograd<T> : run_winograd_last<T>;
    const tenon_status status = run(ctx, s, x, weight, false, bias, out, &finite, err);
    if (status != TENON_OK || finite) return status;
  }
  if (suits_blocks(s)) {
    trace("conv2d", "nChw16c");
    return run_blocks<T>(ctx, ConvPhases(s), images, weight, bias, out, err);
  }
  if (is_direct<T>(s)) {
    trace("conv2d", "direct");
    return run_forward_direct<T>(ctx, s, x, weight, bias, out, err);
  }
  trace("conv2d", "im2col GEMM");
  const int64_t filters = s.group_filters(), depth = s.depth();
  const BatchOffsets groups{
      1, {s.groups}, {filters * depth}, {s.group_channels() * s.pixels()}, {filters * s.results()}};
  const Tiles tiles(Type<Plain<T>>{}, filters, s.batch * s.results(), depth, filters, kBlockColumns,
                    groups);
  return parallel_for_with_scratch(
      ctx, tiles.count(), tiles.work(), blocked_bytes<Plain<T>>(tiles.rows(), tiles.columns()), err,
      [&](int64_t t, void* memory) {
        const OutputTile tile = tiles.at(t);
        const Results<T> results(s, out + tile.c + tile.i * s.results(), tile.j);
        if (bias || depth == 0) {
          const int64_t first = tile.c / std::max<int64_t>(1, s.results()) + tile.i;
          fill_results<T>(results, tile.rows, tile.columns, bias ? bias + first : nullptr);
        }
        multiply_blocked<Plain<T>>(
            tile.rows, tile.columns, depth,
            MatrixRows<Plain<T>>{{weight + tile.a + tile.i * depth, depth, 1}},
            ImagePanels<T>(s, x + tile.b, tile.j), results, bias != nullptr, memory);
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
