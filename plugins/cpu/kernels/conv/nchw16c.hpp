// SPDX-License-Identifier: Apache-2.0
// Direct convolutions on nChw16c blocks: parts of the images are copied once, padded and with the
// channels of a pixel adjacent. A register tile is some pixels, or some channels, times two vectors
// of filters. There is no im2col; each tap is a shift.
#pragma once

#include "conv/block_tile.hpp"
#include "conv/epilogue.hpp"
#include "conv/filter_shares.hpp"
#include "conv/nchw16c_layout.hpp"
#include "conv/padded_nchw.hpp"
#include "conv/shapes.hpp"
#include "gemm/blocked.hpp"
#include "kernel.hpp"
#include "run_memory.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The division of images into parts: some rows of the results of one image, or some whole images.
// Elements of a part are [image, row, column, channel] of one group.
template <class T>
struct BlockParts {
  // Bytes of a part and its results, which stay in the cache.
  static constexpr int64_t kBytes = 384 * 1024;
  // Where each part reads more weights than the cache holds, fewer parts are worth more than that.
  static constexpr int64_t kBytesOfFew = 1024 * 1024;
  static constexpr int64_t kFilters = kBlockVectors * kWidth<T>;

  int64_t pixel, row, image;    // Elements from one to the next.
  int64_t rows, bands, images;  // Rows of results in a band, bands of an image, images in a part.
  int64_t count;

  // Creates at least `least` parts, if there are as many rows; a part includes the results of
  // `filters` filters.
  BlockParts(const ConvShapes& s, int64_t least, int64_t filters, int64_t bytes = kBytes) {
    constexpr int64_t size = sizeof(T);
    const int64_t channels = s.group_channels();
    // Adjacent pixels are read together and must not share one set of the cache.
    pixel = channels + (channels * size % 1024 == 0 ? 64 / size : 0);
    row = ((s.columns - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1) * pixel;
    const int64_t results = s.columns * filters, once = rows_seen(s, 0) * row;
    const int64_t limit = (bytes / size - once) / (s.stride[0] * row + results);
    const int64_t wanted = std::max<int64_t>(1, s.batch * s.rows / std::max<int64_t>(1, least));
    rows = std::clamp<int64_t>(std::min(limit, wanted), 1, s.rows);
    bands = (s.rows + rows - 1) / rows;
    rows = (s.rows + bands - 1) / bands;
    image = rows_seen(s, rows) * row;
    const int64_t fit = bytes / size / (image + rows * results);
    images = bands > 1 ? 1 : std::clamp<int64_t>(std::min(fit, wanted / s.rows), 1, s.batch);
    count = bands > 1 ? s.batch * bands : (s.batch + images - 1) / images;
  }

  static int64_t rows_seen(const ConvShapes& s, int64_t rows) {
    return (rows - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1;
  }
  int64_t elements() const { return images * image + kWidth<T>; }
  int64_t results(const ConvShapes& s) const { return images * rows * s.columns; }

  // One part.
  struct Part {
    int64_t first, images, top, rows;  // Images, and rows of results.
  };
  Part at(const ConvShapes& s, int64_t i) const {
    if (bands == 1) {
      return {i * images, std::min(images, s.batch - i * images), 0, s.rows};
    }
    const int64_t top = i % bands * rows;
    return {i / bands, 1, top, std::min(rows, s.rows - top)};
  }
  // The number of segments that the pixels under all taps form, and where each begins. The pixels
  // of one kernel row, with all channels, are adjacent if there is no gap between them.
  int64_t segments(const ConvShapes& s) const {
    const bool joined = s.dilation[1] == 1 && pixel == s.group_channels();
    return joined ? s.kernel[0] : s.taps();
  }
  int64_t segment(const ConvShapes& s, int64_t i) const {
    const int64_t tap = i * (s.taps() / segments(s));
    return tap / s.kernel[1] * s.dilation[0] * row + tap % s.kernel[1] * s.dilation[1] * pixel;
  }
};

// Copies row y of the pixels that an image of a part reads, for one group.
template <class T>
void fill_row(const ConvShapes& s, const BlockParts<T>& parts,
              const typename BlockParts<T>::Part& part, const Images& x, int64_t group,
              int64_t image, int64_t y, T* to) {
  const int64_t channels = s.group_channels(), size = sizeof(T);
  const int64_t from_row = part.top * s.stride[0] - s.padding[0] + y;
  const Inside across(-s.padding[1], s.width, 1, parts.row / parts.pixel);
  const int64_t n = across.end - across.begin;
  T* row = to + image * parts.image + y * parts.row;
  if (from_row < 0 || from_row >= s.height || n == 0) {
    std::fill_n(row, parts.row, T(0));
    return;
  }
  const T* pixels = static_cast<const T*>(x.data) + (part.first + image) * x.image +
                    group * channels * x.channel +
                    (from_row * s.width + across.begin - s.padding[1]) * x.pixel;
  T* inside = row + across.begin * parts.pixel;
  std::fill(row, inside, T(0));
  if (x.pixel == 1) {
    const int64_t whole = channels / kWidth<T> * kWidth<T>;
    for (int64_t c = 0; c < whole; c += kWidth<T>) {
      gather_channels(pixels + c * x.channel, x.channel, kWidth<T>, n, inside + c, parts.pixel);
    }
    transpose_elements(size, reinterpret_cast<const char*>(pixels + whole * x.channel),
                       x.channel * size, reinterpret_cast<char*>(inside + whole),
                       parts.pixel * size, channels - whole, n);
  } else if (x.pixel == parts.pixel) {
    std::copy_n(pixels, n * parts.pixel, inside);
  } else {
    for (int64_t j = 0; j < n; ++j) {
      copy_every(pixels + j * x.pixel, 1, inside + j * parts.pixel, channels);
    }
  }
  std::fill(inside + n * parts.pixel, row + parts.row, T(0));
}

// Filters in blocks of two vectors, of which the last may have one: [block][row][filter].
template <class T>
struct FilterBlocks {
  static constexpr int64_t kFilters = BlockParts<T>::kFilters;
  int64_t filters, rows;

  int64_t count() const { return (filters + kFilters - 1) / kFilters; }
  int64_t vectors(int64_t block) const {
    return filters - block * kFilters > kWidth<T> ? kBlockVectors : 1;
  }
  int64_t elements() const { return (filters + kWidth<T> - 1) / kWidth<T> * kWidth<T> * rows; }
  int64_t at(int64_t block) const { return block * kFilters * rows; }
};

// Calls f(first, n, transposed, row) for the weights of a vector of filters, several at a time and
// filter by filter in `transposed`; row(i) is the index of weight i in [u, v, channel].
template <class T, class F>
void by_taps(const ConvShapes& s, F&& f) {
  constexpr int64_t some = 64;
  alignas(64) T transposed[some * kWidth<T>] = {};
  const auto row = [&](int64_t i) { return i % s.taps() * s.group_channels() + i / s.taps(); };
  for (int64_t k = 0; k < s.depth(); k += some)
    f(k, std::min(some, s.depth() - k), transposed, row);
}

// Arranges the weights of a group in rows of taps and channels, [u, v, channel], with a last row of
// biases.
template <class T>
void pack_weight(const ConvShapes& s, const FilterBlocks<T>& blocks, int64_t block, const T* weight,
                 const T* bias, T* to) {
  constexpr int64_t width = kWidth<T>, size = sizeof(T);
  const int64_t depth = s.depth(), row = blocks.vectors(block) * width;
  for (int64_t v = 0; v < blocks.vectors(block); ++v, to += width) {
    const int64_t first = block * blocks.kFilters + v * width;
    const int64_t filters = std::min(width, blocks.filters - first);
    by_taps<T>(s, [&](int64_t k, int64_t n, T* transposed, auto index) {
      transpose_elements(size, reinterpret_cast<const char*>(weight + first * depth + k),
                         depth * size, reinterpret_cast<char*>(transposed), width * size, filters,
                         n);
      for (int64_t i = 0; i < n; ++i) {
        std::copy_n(transposed + i * width, width, to + index(k + i) * row);
      }
    });
    for (int64_t f = 0; f < width; ++f) {
      to[depth * row + f] = bias && f < filters ? bias[first + f] : T(0);
    }
  }
}

// The inverse of pack_weight().
template <class T>
void unpack_weight(const ConvShapes& s, const FilterBlocks<T>& blocks, int64_t block, const T* from,
                   T* weight) {
  constexpr int64_t width = kWidth<T>, size = sizeof(T);
  const int64_t depth = s.depth(), row = blocks.vectors(block) * width;
  for (int64_t v = 0; v < blocks.vectors(block); ++v, from += width) {
    const int64_t first = block * blocks.kFilters + v * width;
    by_taps<T>(s, [&](int64_t k, int64_t n, T* transposed, auto index) {
      for (int64_t i = 0; i < n; ++i) {
        std::copy_n(from + index(k + i) * row, width, transposed + i * width);
      }
      transpose_elements(size, reinterpret_cast<const char*>(transposed), width * size,
                         reinterpret_cast<char*>(weight + first * depth + k), depth * size, n,
                         std::min(width, blocks.filters - first));
    });
  }
}

// True if there are enough filters to fill a vector, and if a sum is long enough to outweigh the
// fixed cost of a tile.
inline bool suits_blocks(const ConvShapes& s) {
  return !s.is_depthwise() && s.group_filters() >= 16 && s.depth() >= 16;
}

// Stores `left` pixels of results, whose filters are vectors, to NHWC images.
template <class T>
void store_pixels(const T* from, int64_t pixels, int64_t left, T* to, int64_t pixel) {
  for (int64_t i = 0; i < pixels; ++i) copy_every(from + i * kWidth<T>, 1, to + i * pixel, left);
}

// The blocks of filters of a phase; their last row is the bias.
template <class T>
FilterBlocks<T> blocks_of(const ConvShapes& phase) {
  return {phase.group_filters(), phase.depth() + 1};
}

// Elements of the packed weights of all phases and groups.
template <class T>
int64_t packed_elements(const ConvPhases& phases) {
  int64_t elements = 0;
  for (int64_t p = 0; p < phases.count; ++p) {
    const ConvShapes& s = phases.parts[p].s;
    elements += s.groups * blocks_of<T>(s).elements();
  }
  return elements;
}

// Packs the weights of all phases: [group][filter][channel][tap], those of each phase behind those
// of the phases before.
template <class T>
void pack_phases(const ConvPhases& phases, const T* weight, const T* bias, T* packed) {
  const int64_t filters = phases.frame.group_filters();
  for (int64_t p = 0; p < phases.count; ++p) {
    const ConvPhases::Part& part = phases.parts[p];
    const FilterBlocks<T> blocks = blocks_of<T>(part.s);
    const T* from = weight + part.taps_before * part.s.groups * part.s.group_channels() * filters;
    parallel(part.s.groups * blocks.count(), 4 * part.s.depth(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t g = i / blocks.count(), block = i % blocks.count();
        pack_weight(part.s, blocks, block, from + g * filters * part.s.depth(),
                    bias ? bias + g * filters : nullptr,
                    packed + g * blocks.elements() + blocks.at(block));
      }
    });
    packed += part.s.groups * blocks.elements();
  }
}

// Computes out[image, group] = weight[group] * x[image, group] in the layout of x, with weights
// that pack_phases() has packed. An epilogue needs NCHW images and one phase.
template <class T, class Owner>
tenon_status multiply_blocks(Owner* owner, const ConvPhases& phases, const Images& x,
                             const T* packed, const ConvEpilogue<T>* epilogue, T* out,
                             tenon_err* err) {
  constexpr int64_t width = kWidth<T>;
  const ConvShapes& s = phases.frame;
  const int64_t transposes = phases.transposes(), down = phases.step[0], across = phases.step[1];
  const int64_t filters = s.group_filters();
  // Each part reads all weights. Where these are larger than the images, few parts divide the
  // filters among the threads instead of the rows.
  const bool by_filters = s.group_channels() * s.batch * s.pixels() < s.depth() * filters;
  const BlockParts<T> parts(s, by_filters ? 1 : 2 * host->thread_count() / s.groups,
                            BlockParts<T>::kFilters * transposes);
  const int64_t items = parts.count * s.groups;  // Of one share.
  const FilterShares shares(by_filters ? items : INT64_MAX, filters, BlockParts<T>::kFilters);
  const Images results = images_like(x, out, s.filters, phases.height * phases.width);
  struct Own {  // Of one phase.
    FilterBlocks<T> blocks;
    const T* packed;
    Segments taps;
  };
  Own own_of[ConvPhases::kMax];
  int64_t segments = 0, depth = 0;
  for (int64_t p = 0; p < phases.count; ++p) {
    const ConvShapes& of = phases.parts[p].s;
    const int64_t count = of.taps() > 0 ? parts.segments(of) : 0;
    own_of[p] = {blocks_of<T>(of), packed, {nullptr, count, 0}};
    if (count > 0) own_of[p].taps.length = of.depth() / count;
    packed += of.groups * own_of[p].blocks.elements();
    segments += count;
    depth += of.depth();
  }
  void* memory = nullptr;
  const tenon_status status =
      allocate_scratch(owner, static_cast<uint64_t>(segments) * sizeof(int64_t), &memory, err);
  if (status != TENON_OK) return status;
  auto* offsets = static_cast<int64_t*>(memory);
  for (int64_t p = 0; p < phases.count; ++p) {
    const ConvPhases::Part& part = phases.parts[p];
    own_of[p].taps.offsets = offsets;
    for (int64_t i = 0; i < own_of[p].taps.count; ++i) {
      *offsets++ =
          parts.segment(part.s, i) + part.shift[0] * parts.row + part.shift[1] * parts.pixel;
    }
  }
  const int64_t pixels = (parts.elements() + 15) / 16 * 16;
  return parallel_for_with_scratch(
      owner, shares.count() * items, parts.results(s) * shares.each() * depth / width,
      (pixels + parts.results(s) * transposes * parts.kFilters) * static_cast<int64_t>(sizeof(T)),
      err, [&](int64_t item, void* own) {
        const int64_t share = item / items, g = item % s.groups;
        const auto part = parts.at(s, item % items / s.groups);
        T *image = static_cast<T*>(own), *accumulators = image + pixels;
        for (int64_t n = 0; n < part.images; ++n) {
          for (int64_t y = 0; y < parts.rows_seen(s, part.rows); ++y) {
            fill_row(s, parts, part, x, g, n, y, image);
          }
        }
        const int64_t top = part.top * down;
        const int64_t rows = std::min(part.rows * down, phases.height - top);
        const int64_t some = rows * phases.width, plane = part.images * some * width;
        const int64_t end = (shares.end(share) + parts.kFilters - 1) / parts.kFilters;
        for (int64_t block = shares.begin(share) / parts.kFilters; block < end; ++block) {
          const int64_t vectors = own_of[0].blocks.vectors(block), filter = block * parts.kFilters;
          // Whole vectors of filters of NHWC results are stored directly.
          const bool direct = x.pixel != 1 && filters - filter >= vectors * width;
          const auto result = [&](int64_t n, int64_t y) {
            return out + (part.first + n) * results.image +
                   (g * filters + filter) * results.channel +
                   (top + y) * phases.width * results.pixel;
          };
          const int64_t pixel = direct ? results.pixel : width;
          for (int64_t p = 0; p < phases.count; ++p) {
            const ConvPhases::Part& phase = phases.parts[p];
            const Own& of = own_of[p];
            const T* b = of.packed + g * of.blocks.elements() + of.blocks.at(block);
            const T* bias = b + phase.s.depth() * vectors * width;
            BlockTile<T> tile{of.taps,
                              s.stride[1] * parts.pixel,
                              1,
                              0,
                              nullptr,
                              b,
                              bias,
                              0,
                              width,
                              nullptr,
                              nullptr,
                              across * pixel,
                              direct ? width : plane,
                              0};
            const int64_t of_image = std::min(part.rows, phase.s.rows - part.top);
            for (int64_t i = 0; i < part.images * of_image; ++i) {
              const int64_t n = i / of_image, y = i % of_image;
              const T* from = image + n * parts.image + y * s.stride[0] * parts.row;
              const int64_t row = phase.first[0] + y * down;
              T* to =
                  direct ? result(n, row) : accumulators + (n * some + row * phases.width) * width;
              to += phase.first[1] * pixel;
              for_tiles(phase.s.columns, [&](int64_t j, int64_t count) {
                tile.left = from + j * tile.left_row;
                tile.results = to + j * tile.result_row;
                choose_block_tile<T>(count, vectors)(tile);
              });
            }
          }
          if (direct) continue;
          for (int64_t v = 0; v < vectors; ++v) {
            const int64_t left = std::min(width, filters - filter - v * width);
            for (int64_t n = 0; n < part.images; ++n) {
              const T* from = accumulators + v * plane + n * some * width;
              T* to = result(n, 0) + v * width * results.channel;
              if (x.pixel == 1) {
                scatter_channels(from, left, some, to, results.channel);
                if (epilogue) {
                  epilogue->on_filters(g * filters + filter + v * width, to,
                                       {left, results.channel, 1, some, some});
                }
              } else {
                store_pixels(from, some, left, to, results.pixel);
              }
            }
          }
        }
      });
}

// The same with weights as they are.
template <class T>
tenon_status run_blocks(tenon_ctx* ctx, const ConvPhases& phases, const Images& x, const T* weight,
                        const T* bias, T* out, tenon_err* err) {
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(packed_elements<T>(phases)) * sizeof(T);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  T* packed = static_cast<T*>(memory);
  pack_phases(phases, weight, bias, packed);
  return multiply_blocks<T>(ctx, phases, x, packed, nullptr, out, err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
