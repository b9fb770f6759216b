// SPDX-License-Identifier: Apache-2.0
// Conversion between images and nChw16c blocks, which hold one vector of channels for each pixel.
// Images are NCHW or NHWC in any float dtype.
#pragma once

#include "elementwise/low_precision.hpp"
#include "gemm/micro_kernel.hpp"
#include "simd/shuffle.hpp"

#include <algorithm>
#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA {

// Transposes a few pixels of one vector of channels: 16 bytes of each channel. Loads and stores of
// 16 bytes gather and scatter the pieces; shuffles transpose pixels and channels within them.
template <class T>
struct ChannelTile {
  using Vector = typename VectorOf<T>::type;
  typedef T Piece __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
  static constexpr int kPixels = 16 / sizeof(T), kPieces = kVectorBytes / 16;

  // to[p * row + c] = from[c * step + p]; unless All, channels from `channels` on become zeros.
  template <bool All>
  [[gnu::always_inline]] static void gather(const T* from, int64_t step, int64_t channels, T* to,
                                            int64_t row) {
    Vector rows[kPixels];
#pragma GCC unroll 4
    for (int r = 0; r < kPixels; ++r) {
      const auto advance = [&](int q) {
        const int c = r + q * kPixels;
        return All || c < channels ? *reinterpret_cast<const Piece*>(from + c * step) : Piece{};
      };
      if constexpr (kPieces == 4) {
        rows[r] = join(join(advance(0), advance(1)), join(advance(2), advance(3)));
      } else if constexpr (kPieces == 2) {
        rows[r] = join(advance(0), advance(1));
      } else {
        rows[r] = advance(0);
      }
    }
    turn(rows);
#pragma GCC unroll 4
    for (int r = 0; r < kPixels; ++r) {
      *reinterpret_cast<typename VectorOf<T>::unaligned*>(to + r * row) = rows[r];
    }
  }

  // to[c * step + p] = from[p][c].
  template <bool All>
  [[gnu::always_inline]] static void scatter(const T* from, int64_t channels, T* to, int64_t step) {
    Vector rows[kPixels];
#pragma GCC unroll 4
    for (int r = 0; r < kPixels; ++r)
      rows[r] = *reinterpret_cast<const Vector*>(from + r * kWidth<T>);
    turn(rows);
#pragma GCC unroll 4
    for (int r = 0; r < kPixels; ++r) {
#pragma GCC unroll 4
      for (int q = 0; q < kPieces; ++q) {
        const int c = r + q * kPixels;
        if (All || c < channels) {
          *reinterpret_cast<Piece*>(to + c * step) = reinterpret_cast<const Piece*>(&rows[r])[q];
        }
      }
    }
  }

 private:
  // Interleaves row i with row i + kPixels / 2 in each piece, log2(kPixels) times.
  static void turn(Vector (&rows)[kPixels]) {
#pragma GCC unroll 2
    for (int round = 1; round < kPixels; round *= 2) {
      Vector next[kPixels];
#pragma GCC unroll 2
      for (int i = 0; i < kPixels / 2; ++i) {
        const Vector a = rows[i], b = rows[i + kPixels / 2];
        next[2 * i] = shuffle(a, b, [](int l) { return interleaved(l, 0); });
        next[2 * i + 1] = shuffle(a, b, [](int l) { return interleaved(l, kPixels / 2); });
      }
#pragma GCC unroll 4
      for (int i = 0; i < kPixels; ++i) rows[i] = next[i];
    }
  }
  // The index that interleaves two rows within each piece, from the piece's element `first` on.
  static constexpr int interleaved(int l, int first) {
    return l / kPixels * kPixels + first + l % kPixels / 2 + l % 2 * kWidth<T>;
  }
  template <class A>
  [[gnu::always_inline]] static auto join(A a, A b) {
    if constexpr (sizeof(A) == 16 && sizeof(T) == 4) {
      return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
    } else if constexpr (sizeof(A) == 16) {
      return __builtin_shufflevector(a, b, 0, 1, 2, 3);
    } else if constexpr (sizeof(T) == 4) {
      return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    } else {
      return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
    }
  }
};

// to[p * row + c] = from[c * step + p], in vectors whose elements from `channels` on become zeros.
template <class T>
void gather_channels(const T* from, int64_t step, int64_t channels, int64_t pixels, T* to,
                     int64_t row = kWidth<T>) {
  using Tile = ChannelTile<T>;
  constexpr int64_t width = kWidth<T>, some = Tile::kPixels;
  if (pixels < some) {
    for (int64_t p = 0; p < pixels; ++p) {
      for (int64_t c = 0; c < width; ++c) {
        to[p * row + c] = c < channels ? from[c * step + p] : T(0);
      }
    }
    return;
  }
  const auto tiles = [&]<bool All>() {
    for (int64_t p = 0; p < pixels; p += some) {
      const int64_t at = std::min(p, pixels - some);  // The last tile overlaps the one before.
      Tile::template gather<All>(from + at, step, channels, to + at * row, row);
    }
  };
  channels == width ? tiles.template operator()<true>() : tiles.template operator()<false>();
}

// to[c * step + p] = from[p][c], where `from` holds vectors.
template <class T>
void scatter_channels(const T* from, int64_t channels, int64_t pixels, T* to, int64_t step) {
  using Tile = ChannelTile<T>;
  constexpr int64_t width = kWidth<T>, some = Tile::kPixels;
  if (pixels < some) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) to[c * step + p] = from[p * width + c];
    }
    return;
  }
  const auto tiles = [&]<bool All>() {
    for (int64_t p = 0; p < pixels; p += some) {
      const int64_t at = std::min(p, pixels - some);
      Tile::template scatter<All>(from + at * width, channels, to + at, step);
    }
  };
  channels == width ? tiles.template operator()<true>() : tiles.template operator()<false>();
}

// Writes whole vectors of zeros.
template <class T>
void clear(T* from, T* to) {
  using Vector = typename VectorOf<T>::type;
  for (; from < to; from += kWidth<T>) *reinterpret_cast<Vector*>(from) = Vector{};
}

// Images in memory. Steps are in elements; either pixels (NCHW) or channels (NHWC) are adjacent.
struct Images {
  const void* data;
  int dtype;
  int64_t image, channel, pixel;
};

// Dense images of `channels` channels, in the dtype and layout of `x`.
inline Images images_like(const Images& x, const void* data, int64_t channels, int64_t pixels) {
  const bool planes = x.pixel == 1;
  return {data, x.dtype, channels * pixels, planes ? pixels : 1, planes ? 1 : channels};
}

// Reads blocks of channels and converts them to T.
template <class T>
class ChannelReader {
 public:
  explicit ChannelReader(const Images& images) : images_(images) {}

  // Elements of the buffer that read() needs.
  int64_t buffer(int64_t pixels) const {
    return is_low_precision(images_.dtype) && images_.pixel == 1 ? kWidth<T> * pixels : 0;
  }

  // True if pixels are vectors of T in place.
  bool in_place() const { return !is_low_precision(images_.dtype) && images_.pixel != 1; }
  const T* data() const { return static_cast<const T*>(images_.data); }
  int64_t pixel() const { return images_.pixel; }

  // Offset of a pixel in elements.
  int64_t at(int64_t image, int64_t channel, int64_t pixel) const {
    return image * images_.image + channel * images_.channel + pixel * images_.pixel;
  }
  // Reads rows * length pixels of `channels` channels: `length` vectors to the beginning of each
  // `row` elements of `to`.
  void read(int64_t offset, int64_t channels, int64_t rows, int64_t length, T* to, int64_t row,
            T* buffer) const {
    const char* from = static_cast<const char*>(images_.data) + offset * kDtypeSize[images_.dtype];
    if (images_.pixel != 1) {
      const int64_t step = images_.pixel * kDtypeSize[images_.dtype];
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < length; ++j, from += step) {
          // The next channel is too far away for the hardware prefetcher.
          __builtin_prefetch(from + 16 * step);
          copy_pixel(from, channels, to + i * row + j * kWidth<T>);
        }
      }
      return;
    }
    const T* plane = reinterpret_cast<const T*>(from);
    int64_t step = images_.channel;
    if constexpr (std::is_same_v<T, float>) {
      if (is_low_precision(images_.dtype)) {
        const int64_t size = kDtypeSize[images_.dtype];
        for (int64_t c = 0; c < channels; ++c) {
          widen(images_.dtype, from + c * step * size, size, buffer + c * rows * length,
                rows * length);
        }
        plane = buffer;
        step = rows * length;
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      gather_channels(plane + i * length, step, channels, length, to + i * row);
    }
  }

 private:
  void copy_pixel(const char* from, int64_t channels, T* to) const {
    constexpr int64_t width = kWidth<T>;
    using Vector = typename VectorOf<T>::type;
    using Unaligned = typename VectorOf<T>::unaligned;
    if (channels < width) *reinterpret_cast<Vector*>(to) = Vector{};
    if (!is_low_precision(images_.dtype)) {
      if (channels == width) {
        *reinterpret_cast<Vector*>(to) = *reinterpret_cast<const Unaligned*>(from);
      } else {
        std::copy_n(reinterpret_cast<const T*>(from), channels, to);
      }
    } else if constexpr (std::is_same_v<T, float>) {
      if (images_.dtype == TENON_DTYPE_BF16 && channels == width) {
        const BFloat16* pixel = reinterpret_cast<const BFloat16*>(from);
        for (int64_t c = 0; c < width; ++c) to[c] = pixel[c];
      } else {
        widen(images_.dtype, from, kDtypeSize[images_.dtype], to, channels);
      }
    }
  }

  Images images_;
};

// Writes blocks of channels of results to images in their dtype.
template <class T>
class ChannelWriter {
 public:
  ChannelWriter(void* data, const Images& layout)
      : data_(static_cast<char*>(data)), size_(kDtypeSize[layout.dtype]), layout_(layout) {}

  // Elements of the buffer that write() needs.
  int64_t buffer(int64_t pixels) const {
    return is_low_precision(layout_.dtype) && layout_.pixel == 1 ? kWidth<T> * pixels : 0;
  }
  // True if pixels are vectors of T in place.
  bool in_place() const { return !is_low_precision(layout_.dtype) && layout_.pixel != 1; }
  int64_t pixel() const { return layout_.pixel; }
  T* at(int64_t image, int64_t channel, int64_t pixel) const {
    return reinterpret_cast<T*>(index(image, channel, pixel));
  }

  // Prefetches one of the cache lines that write() fills in planes; there are as many as vectors.
  void issue(int64_t image, int64_t channel, int64_t apart, int64_t first, int64_t vector) const {
    constexpr int64_t width = kWidth<T>;
    __builtin_prefetch(
        index(image, channel + vector % width * apart, first + vector / width * width), 1);
  }
  // Writes pixels [first, first + pixels) of the channels channel, channel + apart, ...
  void write(const T* from, int64_t channels, int64_t image, int64_t channel, int64_t apart,
             int64_t first, int64_t pixels, T* buffer) const {
    char* to = index(image, channel, first);
    const int64_t step = apart * layout_.channel;
    if (layout_.pixel != 1) {
      for (int64_t i = 0; i < pixels; ++i, from += kWidth<T>, to += layout_.pixel * size_) {
        write_pixel(from, channels, step, to);
      }
      return;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (is_low_precision(layout_.dtype)) {
        scatter_channels(from, channels, pixels, buffer, pixels);
        for (int64_t c = 0; c < channels; ++c) {
          narrow(layout_.dtype, buffer + c * pixels, to + c * step * size_, size_, pixels);
        }
        return;
      }
    }
    scatter_channels(from, channels, pixels, reinterpret_cast<T*>(to), step);
  }

 private:
  char* index(int64_t image, int64_t channel, int64_t pixel) const {
    return data_ +
           (image * layout_.image + channel * layout_.channel + pixel * layout_.pixel) * size_;
  }
  void write_pixel(const T* from, int64_t channels, int64_t step, char* to) const {
    if constexpr (std::is_same_v<T, float>) {
      if (is_low_precision(layout_.dtype)) {
        return narrow(layout_.dtype, from, to, step * size_, channels);
      }
    }
    T* pixel = reinterpret_cast<T*>(to);
    if (step == 1 && channels == kWidth<T>) {
      *reinterpret_cast<typename VectorOf<T>::unaligned*>(pixel) =
          *reinterpret_cast<const typename VectorOf<T>::type*>(from);
    } else {
      for (int64_t c = 0; c < channels; ++c) pixel[c * step] = from[c];
    }
  }

  char* data_;
  int64_t size_;
  Images layout_;
};

}  // namespace tenon::cpu::TENON_CPU_ISA
