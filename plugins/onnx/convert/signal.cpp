// SPDX-License-Identifier: Apache-2.0
// Windows, MelWeightMatrix, DFT and STFT.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "convert/converters.hpp"
#include "tensors.hpp"

namespace tenon::onnx {
namespace {

Tensor doubles_as(Conversion& c, const Floats& list, const Ints& shape, int32_t dtype) {
  Tensor tensor = make_known(TENON_DTYPE_F64, shape);
  std::copy(list.begin(), list.end(), static_cast<double*>(tensor->data));
  return c.cast(tensor, dtype);
}

int64_t small_size(Conversion& c, const char* name) {
  const int64_t size = int_of(c.input(name), name);
  if (size < 0 || size > int64_t{1} << 24)
    c.fail(std::string(name) + ": expected 0 to 2^24, got " + std::to_string(size));
  return size;
}

// Real and imaginary parts along the last axis, of which a real signal has one. In float64: sums that ought to be 0 are.
Tensor as_complex(Conversion& c, const Tensor& narrow) {
  const Tensor x = c.cast(narrow, TENON_DTYPE_F64);
  if (x->shape[x->ndim - 1] == 2) return c.call("as_complex", {x});
  const Tensor real = c.call("select", {x, -1, 0});
  return c.call("complex", {real, c.call("zeros_like", {real})});
}

// To `length` elements along `axis`: cut off, or zeros behind.
Tensor with_length(Conversion& c, const Tensor& x, int64_t axis, int64_t length) {
  Ints padding(2 * static_cast<size_t>(x->ndim), 0);
  padding[2 * static_cast<size_t>(axis) + 1] = length - x->shape[axis];
  return x->shape[axis] == length ? x : c.call("pad_constant", {x, padding});
}

}  // namespace

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n): Hann, Hamming, Blackman.
Values convert_window(Conversion& c) {
  const int64_t size = small_size(c, "size");
  const std::string& name = c.node.op_type;
  const double hamming = 25.0 / 46.0;
  const double a0 = name == "HannWindow"      ? 0.5
                    : name == "HammingWindow" ? hamming
                                              : 0.42,
               a1 = name == "HannWindow"      ? 0.5
                    : name == "HammingWindow" ? 1 - hamming
                                              : 0.5,
               a2 = name == "BlackmanWindow" ? 0.08 : 0;
  const double period = static_cast<double>(c.integer("periodic") != 0 ? size : size - 1);
  Floats list;
  for (int64_t i = 0; i < size; ++i) {
    const double turn = period > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / period : 0;
    list.push_back(a0 - a1 * std::cos(turn) + a2 * std::cos(2 * turn));
  }
  return {
      doubles_as(c, list, {size}, dtype_of(c.integer("output_datatype", 1), "output_datatype"))};
}

Values convert_mel_weight_matrix(Conversion& c) {
  const int64_t bins = small_size(c, "num_mel_bins"), length = small_size(c, "dft_length"),
                rate = int_of(c.input("sample_rate"), "sample_rate");
  const double low = float_of(c.input("lower_edge_hertz"), "lower_edge_hertz"),
               high = float_of(c.input("upper_edge_hertz"), "upper_edge_hertz");
  if (bins < 1 || length < 1 || rate < 1) c.fail("expected positive numbers");
  const int64_t rows = length / 2 + 1;
  if (rows > (int64_t{1} << 24) / bins) c.refuse("a matrix of more than 2^24 elements");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double from = mel(low), step = (mel(high) - from) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + from) / 2595) - 1);
    edges.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  Floats matrix(static_cast<size_t>(rows * bins), 0);
  const auto set = [&](int64_t row, int64_t bin, double value) {
    if (row >= 0 && row < rows) matrix[static_cast<size_t>(row * bins + bin)] = value;
  };
  for (int64_t bin = 0; bin < bins; ++bin) {
    const auto at = [&](int64_t i) { return edges[static_cast<size_t>(bin + i)]; };
    const int64_t lower = at(0), centre = at(1), upper = at(2);
    if (centre == lower) set(centre, bin, 1);
    for (int64_t i = lower; centre != lower && i <= centre; ++i)
      set(i, bin, static_cast<double>(i - lower) / static_cast<double>(centre - lower));
    for (int64_t i = centre; upper > centre && i < upper; ++i)
      set(i, bin, static_cast<double>(upper - i) / static_cast<double>(upper - centre));
  }
  return {doubles_as(c, matrix, {rows, bins},
                     dtype_of(c.integer("output_datatype", 1), "output_datatype"))};
}

Values convert_dft(Conversion& c) {
  const Tensor& input = c.tensor("input");
  if (input->ndim < 2 || input->shape[input->ndim - 1] < 1 || input->shape[input->ndim - 1] > 2)
    c.fail("expected real or complex numbers along the last axis, got " + describe(*input.get()));
  int64_t given = c.schema.since < 20 ? c.integer("axis", 1) : -2;
  if (c.schema.since >= 20 && c.has("axis")) given = int_of(c.input("axis"), "axis");
  const int64_t axis = normal_axis(given, input->ndim, "axis");
  if (axis == input->ndim - 1) c.fail("axis: expected another one than the last");
  const bool is_inverse = c.integer("inverse") != 0, is_onesided = c.integer("onesided") != 0;
  const bool is_complex = input->shape[input->ndim - 1] == 2;
  int64_t length = c.has("dft_length") ? small_size(c, "dft_length") : input->shape[axis];
  if (length < 1) c.fail("expected a length of at least 1");
  if (is_inverse && is_onesided) {
    // Half of a spectrum whose other half is its mirror image, to real numbers.
    if (!c.has("dft_length")) length = 2 * (input->shape[axis] - 1);
    const Tensor half = with_length(c, as_complex(c, input), axis, length / 2 + 1);
    const Tensor real =
        c.call("fft_c2r", {half, Ints{axis}, length, 1.0 / static_cast<double>(length)});
    return {c.cast(c.call("unsqueeze", {real, Ints{-1}}), input->dtype)};
  }
  if (is_onesided && is_complex) c.fail("onesided: expected real numbers, got complex ones");
  const Tensor signal = with_length(c, as_complex(c, input), axis, length);
  const double scale = is_inverse ? 1.0 / static_cast<double>(length) : 1.0;
  Tensor spectrum = c.call("fft_c2c", {signal, Ints{axis}, !is_inverse, scale});
  if (is_onesided) spectrum = c.call("narrow", {spectrum, axis, 0, length / 2 + 1});
  return {c.cast(c.call("as_real", {spectrum}), input->dtype)};
}

Values convert_stft(Conversion& c) {
  const Tensor& signal = c.tensor("signal");
  if (signal->ndim != 3)
    c.fail("expected a signal of [N, length, 1 or 2], got " + describe(*signal.get()));
  const bool is_onesided = c.integer("onesided", 1) != 0;
  const int64_t step = small_size(c, "frame_step");
  int64_t length = 0;
  if (c.has("window")) length = c.tensor("window")->numel;
  if (c.has("frame_length")) length = small_size(c, "frame_length");
  if (length < 1 || step < 1)
    c.fail("expected a window or frame_length, and a frame_step, of at least 1");
  // [N, frames, length]
  Tensor frames = c.call("sliding_window", {as_complex(c, signal), 1, length, step});
  if (c.has("window")) frames = c.call("multiply", {frames, c.tensor("window")});
  Tensor spectrum = c.call("fft_c2c", {frames, Ints{2}, true, 1.0});
  if (is_onesided) spectrum = c.call("narrow", {spectrum, 2, 0, length / 2 + 1});
  return {c.cast(c.call("as_real", {spectrum}), signal->dtype)};
}

}  // namespace tenon::onnx
