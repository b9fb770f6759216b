// SPDX-License-Identifier: Apache-2.0
// The extents of a convolution, and of the convolutions that compute its gradients.
#pragma once

#include "pool/window.hpp"

#include <numeric>

namespace tenon::cpu::TENON_CPU_ISA {

struct ConvShapes : Window {
  int64_t batch, channels, filters, groups;
  int64_t group_channels() const { return channels / groups; }
  int64_t group_filters() const { return filters / groups; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t depth() const { return group_channels() * taps(); }
  int64_t pixels() const { return height * width; }
  int64_t results() const { return rows * columns; }
  // Each filter reads one channel.
  bool is_depthwise() const { return groups > 1 && channels == groups; }
  // The image is its own im2col matrix.
  bool is_pointwise() const { return sees_single_pixels() && stride[0] == 1 && stride[1] == 1; }
  // Some pixels of the image are its im2col matrix.
  bool is_strided_pointwise() const { return sees_single_pixels() && !is_pointwise(); }
  bool sees_single_pixels() const { return taps() == 1 && padding[0] == 0 && padding[1] == 0; }
};

// The pointwise convolution over the pixels that a strided one reads.
inline ConvShapes without_stride(ConvShapes s) {
  s.height = s.rows;
  s.width = s.columns;
  s.stride[0] = s.stride[1] = 1;
  return s;
}

// A channel of a pointwise convolution as a single row, for longer runs.
inline ConvShapes flattened(ConvShapes s) {
  if (s.is_pointwise()) {
    s.width = s.columns = s.pixels();
    s.height = s.rows = 1;
  }
  return s;
}

// One axis of an input gradient: the pixels y = first + stride * a read the taps start + step * t.
// They are a convolution of the output gradient with those taps in reverse.
struct Phase {
  int64_t start, step, taps, pixels, padding, dilation;

  Phase(int64_t first, int64_t extent, int64_t kernel, int64_t stride, int64_t padding_of,
        int64_t dilation_of) {
    const int64_t common = std::gcd(stride, dilation_of);
    step = stride / common;
    dilation = dilation_of / common;
    pixels = extent > first ? (extent - first + stride - 1) / stride : 0;
    start = 0;
    while (start < step && (first + padding_of - start * dilation_of) % stride != 0) ++start;
    taps = start < step && start < kernel ? (kernel - start + step - 1) / step : 0;
    padding = (taps - 1) * dilation - (first + padding_of - start * dilation_of) / stride;
  }
};

// The convolution that computes the pixels of a phase of the input gradient.
inline ConvShapes transposed_shapes(const ConvShapes& s, const Phase& down, const Phase& across) {
  ConvShapes turn = s;
  turn.channels = s.filters;
  turn.filters = s.channels;
  turn.height = s.rows;
  turn.width = s.columns;
  turn.rows = down.pixels;
  turn.columns = across.pixels;
  turn.kernel[0] = down.taps;
  turn.kernel[1] = across.taps;
  turn.stride[0] = turn.stride[1] = 1;
  turn.padding[0] = down.padding;
  turn.padding[1] = across.padding;
  turn.dilation[0] = down.dilation;
  turn.dilation[1] = across.dilation;
  return turn;
}

// Convolutions over the same images with interleaved results: a single one, or the phases of the
// input gradient of a strided convolution. They read some or all of the taps of `frame`.
struct ConvPhases {
  static constexpr int64_t kMax = 16;
  struct Part {
    ConvShapes s;
    int64_t first[2];  // Row and column of its first result.
    int64_t shift[2];  // Its first tap, among those of the frame.
    // Its first tap among those of the weights, and the step from one to the next.
    int64_t tap, tap_step[2];
    int64_t taps_before;  // Taps of the parts before.
  };
  ConvShapes frame;
  int64_t height, width;  // Extents of all results.
  int64_t step[2];        // From one result of a part to the next.
  int64_t taps;  // Taps of the weights; the parts have fewer in total if some have no pixels.
  int64_t count = 0;
  Part parts[kMax];

  ConvPhases() = default;
  explicit ConvPhases(const ConvShapes& s)
      : frame(s), height(s.rows), width(s.columns), step{1, 1}, taps(s.taps()), count(1) {
    parts[0] = {s, {0, 0}, {0, 0}, 0, {s.kernel[1], 1}, 0};
  }
  int64_t transposes() const { return step[0] * step[1]; }
  int64_t seen_taps() const { return parts[count - 1].taps_before + parts[count - 1].s.taps(); }
};

// The phases of an input gradient, without those that have no pixels.
inline ConvPhases transposed_phases(const ConvShapes& s) {
  ConvPhases all;
  ConvShapes& frame = all.frame;
  frame = s;
  frame.channels = s.filters;
  frame.filters = s.channels;
  frame.height = s.rows;
  frame.width = s.columns;
  all.height = s.height;
  all.width = s.width;
  all.taps = s.taps();
  int64_t before = 0;
  const auto phase = [&](int axis, int64_t i) {
    return Phase(i, axis == 0 ? s.height : s.width, s.kernel[axis], s.stride[axis], s.padding[axis],
                 s.dilation[axis]);
  };
  for (int axis = 0; axis < 2; ++axis) {
    all.step[axis] = s.stride[axis];
    frame.stride[axis] = frame.dilation[axis] = 1;
    frame.padding[axis] = frame.kernel[axis] = 0;
    (axis == 0 ? frame.rows : frame.columns) = phase(axis, 0).pixels;
    for (int64_t i = 0; i < s.stride[axis]; ++i) {
      if (phase(axis, i).taps > 0) {
        frame.padding[axis] = std::max(frame.padding[axis], phase(axis, i).padding);
      }
    }
    for (int64_t i = 0; i < s.stride[axis]; ++i) {
      const Phase p = phase(axis, i);
      const int64_t last = frame.padding[axis] - p.padding + (p.taps - 1) * p.dilation;
      if (p.taps > 0) frame.kernel[axis] = std::max(frame.kernel[axis], last + 1);
    }
    frame.kernel[axis] = std::max<int64_t>(frame.kernel[axis], 1);
  }
  for (int64_t i = 0; i < s.stride[0]; ++i) {
    for (int64_t j = 0; j < s.stride[1]; ++j) {
      const Phase down = phase(0, i), across = phase(1, j);
      if (down.pixels == 0 || across.pixels == 0) continue;
      ConvPhases::Part& part = all.parts[all.count++];
      part = {transposed_shapes(s, down, across),
              {i, j},
              {frame.padding[0] - down.padding, frame.padding[1] - across.padding},
              (down.start + (down.taps - 1) * down.step) * s.kernel[1] + across.start +
                  (across.taps - 1) * across.step,
              {-down.step * s.kernel[1], -across.step},
              before};
      before += part.s.taps();
    }
  }
  return all;
}
// True if there are few enough phases.
inline bool has_transposed_phases(const ConvShapes& s) {
  return s.stride[0] * s.stride[1] <= ConvPhases::kMax;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
