// SPDX-License-Identifier: Apache-2.0
// Weight gradients on nChw16c blocks: a register tile is some channels under a tap times two
// vectors of filters, accumulated over the results of a part of the images.
#pragma once

#include "conv/nchw16c.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Copies the gradients of the results of an image, for one block of filters.
template <class T>
void fill_grads(const FilterBlocks<T>& blocks, int64_t block, const Images& grad, const T* from,
                int64_t results, T* to) {
  constexpr int64_t width = kWidth<T>;
  const int64_t row = blocks.vectors(block) * width;
  for (int64_t v = 0; v < blocks.vectors(block); ++v, to += width) {
    const int64_t first = block * blocks.kFilters + v * width;
    const int64_t filters = std::min(width, blocks.filters - first);
    const T* at = from + first * grad.channel;
    if (grad.pixel == 1) {
      gather_channels(at, grad.channel, filters, results, to, row);
      continue;
    }
    for (int64_t i = 0; i < results; ++i, at += grad.pixel) {
      copy_every(at, 1, to + i * row, filters);
      if (filters < width) std::fill(to + i * row + filters, to + i * row + width, T(0));
    }
  }
}

// Computes weight[group] = grad[group] * x[group] under each tap, over the results of all images.
template <class T>
tenon_status run_blocks_grad(tenon_ctx* ctx, const ConvShapes& s, const Images& grad,
                             const Images& x, T* weight, tenon_err* err) {
  constexpr int64_t width = kWidth<T>;
  const int64_t filters = s.group_filters(), depth = s.depth();
  const BlockParts<T> parts(s, 1, filters);
  const FilterBlocks<T> grads{filters, parts.results(s)}, accumulators{filters, depth};
  const int64_t pixels = (parts.elements() + 15) / 16 * 16, rows = parts.images * parts.rows;
  void* memory = nullptr;
  const auto bytes =
      static_cast<uint64_t>(pixels + grads.elements() + accumulators.elements()) * sizeof(T) +
      static_cast<uint64_t>(rows) * sizeof(int64_t);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  T *of_x = static_cast<T*>(memory), *of_grad = of_x + pixels;
  T* of_weight = of_grad + grads.elements();
  auto* offsets = reinterpret_cast<int64_t*>(of_weight + accumulators.elements());
  const int64_t segments = parts.segments(s), together = depth / segments;
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t p = 0; p < parts.count; ++p) {
      const auto part = parts.at(s, p);
      const int64_t seen = parts.rows_seen(s, part.rows), of_image = part.rows * s.columns;
      for (int64_t i = 0; i < part.images * part.rows; ++i) {
        offsets[i] = i / part.rows * parts.image + i % part.rows * s.stride[0] * parts.row;
      }
      parallel(
          part.images * (seen + grads.count()), 2 * parts.row / width,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const int64_t n = i / (seen + grads.count());
              const int64_t y = i % (seen + grads.count()), block = y - seen;
              if (y < seen) {
                fill_row(s, parts, part, x, g, n, y, of_x);
                continue;
              }
              const T* from = static_cast<const T*>(grad.data) + (part.first + n) * grad.image +
                              g * filters * grad.channel + part.top * s.columns * grad.pixel;
              fill_grads(grads, block, grad, from, of_image,
                         of_grad + grads.at(block) + n * of_image * grads.vectors(block) * width);
            }
          });
      const Segments all{offsets, part.images * part.rows, s.columns};
      parallel(grads.count() * segments, part.images * of_image * together * 2,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t block = i / segments, segment = i % segments;
                   const int64_t vectors = grads.vectors(block), row = vectors * width;
                   const T* a = of_x + parts.segment(s, segment);
                   for_tiles(together, [&](int64_t k, int64_t n) {
                     alignas(64) static constexpr T kZeros[BlockParts<T>::kFilters] = {};
                     T* to = of_weight + accumulators.at(block) + (segment * together + k) * row;
                     choose_block_tile<T>(
                         n, vectors)({all, 1, s.stride[1] * parts.pixel, 0, a + k,
                                      of_grad + grads.at(block), p == 0 ? kZeros : to,
                                      p == 0 ? 0 : row, width, nullptr, to, row, width, 0});
                   });
                 }
               });
    }
    parallel(accumulators.count(), depth * 4, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        unpack_weight(s, accumulators, block, of_weight + accumulators.at(block),
                      weight + g * filters * depth);
      }
    });
  }
  return TENON_OK;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
