// SPDX-License-Identifier: Apache-2.0
// NchwWindows: loop over windows of NCHW images, one vector of adjacent windows at a time. Loop
// order: images and channels, bands of rows, rows of windows, vectors of windows, taps. Bands are
// copied with their padding, and so that pixels one stride apart are adjacent, unless the image can
// be read directly.
#pragma once

#include "conv/padded_nchw.hpp"
#include "parallel_scratch.hpp"
#include "pool/vectors.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
class NchwWindows {
 public:
  NchwWindows(const Window& w, int64_t planes) : w_(w), planes_(planes) {
    const int64_t down = (w.kernel[0] - 1) * w.dilation[0] + 1;
    const int64_t across = (w.columns - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
    const bool inside = w.padding[0] == 0 && w.padding[1] == 0 && across <= w.width &&
                        (w.rows - 1) * w.stride[0] + down <= w.height;
    unpadded_ = inside && (w.stride[1] == 1 || (w.stride[1] == 2 && taps() <= 4));
    row_ = unpadded_ ? w.width : PaddedPlanes<T>(w).row();
    const int64_t limit = kBandBytes / (row_ * static_cast<int64_t>(sizeof(T)));
    rows_ = std::clamp<int64_t>(1 + (limit - down) / w.stride[0], 1, w.rows);
  }

  // The taps of a window: their offsets in the band that is read, and in pixels of the image.
  struct Taps {
    int64_t count;
    int64_t *offsets, *pixels;
  };
  // Consecutive rows of windows of one channel: the pixel of the first tap of the first window, the
  // number of elements from one row to the next, and where the results go.
  struct Rows {
    int64_t first, count;
    const T* pixels;
    int64_t down, result;
  };

  const Window& window() const { return w_; }

  // Calls f(t) for all taps; Count is their number if it is known at compile time.
  template <int Count, class F>
  [[gnu::always_inline]] static void for_taps(const Taps& taps, F&& f) {
    if constexpr (Count > 0) {
#pragma GCC unroll 9
      for (int64_t t = 0; t < Count; ++t) f(t);
    } else {
      for (int64_t t = 0; t < taps.count; ++t) f(t);
    }
  }

  // fold<Step, Count>(taps, rows, memory): `memory` is what prepare(memory) filled in, an element
  // of 8 bytes for each column of windows.
  template <class Prepare, class Reduce>
  tenon_status run(tenon_ctx* ctx, const T* x, T outside, Prepare&& prepare, Reduce&& reduce,
                   tenon_err* err) const {
    void* shared = nullptr;
    const int64_t shared_size = 2 * taps() + w_.columns;
    const tenon_status status =
        host->scratch(ctx, static_cast<uint64_t>(shared_size) * sizeof(int64_t), &shared, err);
    if (status != TENON_OK) return status;
    auto* offsets = static_cast<int64_t*>(shared);
    const Taps all{taps(), offsets, offsets + taps()};
    void* prepared = offsets + 2 * taps();
    prepare(prepared);
    Window whole_band = w_;
    whole_band.rows = rows_;
    const PaddedPlanes<T> padded(whole_band);
    for (int64_t t = 0; t < taps(); ++t) {
      const int64_t u = t / w_.kernel[1], v = t % w_.kernel[1];
      all.pixels[t] = u * w_.dilation[0] * w_.width + v * w_.dilation[1];
      all.offsets[t] = unpadded_ ? all.pixels[t] : padded.offset(0, u, v);
    }
    const auto reduce_rows = [&](const Rows& rows) {
      if (unpadded_ && w_.stride[1] == 2) {
        taps() == 4 ? reduce.template operator()<2, 4>(all, rows, prepared)
                    : reduce.template operator()<2, 0>(all, rows, prepared);
      } else {
        taps() == 9 ? reduce.template operator()<1, 9>(all, rows, prepared)
                    : reduce.template operator()<1, 0>(all, rows, prepared);
      }
    };
    const int64_t results = w_.rows * w_.columns, size = w_.height * w_.width;
    // Several channels per task: the padding of the band is written once.
    const int64_t together = std::clamp<int64_t>(planes_ / (8 * host->thread_count()), 1, 32);
    const int64_t band_size = unpadded_ ? 0 : padded.count(1);
    const auto work = [&](int64_t item, void* memory) {
      T* band = static_cast<T*>(memory);
      const int64_t last = std::min(planes_, (item + 1) * together);
      if (!unpadded_ && rows_ == w_.rows) padded.clear(1, band, outside);
      for (int64_t p = item * together; p < last; ++p) {
        const T* plane = x + p * size;
        for (int64_t top = 0; top < w_.rows; top += rows_) {
          const int64_t down = w_.stride[0] * row_;
          Rows rows{top, std::min(rows_, w_.rows - top), plane + top * down, down,
                    p * results + top * w_.columns};
          if (!unpadded_) {
            Window part = w_;
            part.rows = rows.count;
            part.padding[0] = w_.padding[0] - top * w_.stride[0];
            const PaddedPlanes<T> pixels(part);
            if (rows_ < w_.rows) pixels.clear(1, band, outside);
            pixels.fill(plane, 1, band);
            rows.pixels = band;
          }
          reduce_rows(rows);
        }
      }
    };
    return parallel_for_with_scratch(ctx, (planes_ + together - 1) / together,
                                     together * results * (taps() + 4) / kWindowWidth<T> * 2,
                                     band_size * static_cast<int64_t>(sizeof(T)), err, work);
  }

 private:
  static constexpr int64_t kBandBytes = 16 * 1024;  // half of the first-level cache

  int64_t taps() const { return w_.kernel[0] * w_.kernel[1]; }

  const Window w_;
  int64_t planes_, rows_, row_;  // rows_: of windows in a band; row_: elements of one row of pixels
  bool unpadded_;
};

}  // namespace tenon::cpu::TENON_CPU_ISA
