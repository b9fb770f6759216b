// SPDX-License-Identifier: Apache-2.0
#include "convolution.hpp"

#include <cstddef>
#include <vector>

#include "../stored_float.hpp"

namespace simulated {
namespace {

// Calls f(element of x, element of w, element of y) for each product of the convolution.
template <class F>
void for_each_product(const DnnConvolution& c, const F& f) {
  const int channels = c.w[1], filters = c.w[0] / c.groups;
  const auto index = [](const int(&shape)[4], int i, int j, int k, int l) {
    return ((static_cast<int64_t>(i) * shape[1] + j) * shape[2] + k) * shape[3] + l;
  };
  for (int n = 0; n < c.y[0]; ++n)
    for (int o = 0; o < c.y[1]; ++o)
      for (int oh = 0; oh < c.y[2]; ++oh)
        for (int ow = 0; ow < c.y[3]; ++ow)
          for (int k = 0; k < channels; ++k)
            for (int kh = 0; kh < c.w[2]; ++kh)
              for (int kw = 0; kw < c.w[3]; ++kw) {
                const int h = oh * c.stride[0] - c.padding[0] + kh * c.dilation[0];
                const int w = ow * c.stride[1] - c.padding[1] + kw * c.dilation[1];
                if (h < 0 || h >= c.x[2] || w < 0 || w >= c.x[3]) continue;
                f(index(c.x, n, o / filters * channels + k, h, w), index(c.w, o, k, kh, kw),
                  index(c.y, n, o, oh, ow));
              }
}

template <class T, class Accumulator>
void convolve(const DnnConvolution& c, T* x, T* w, T* y) {
  const uint64_t count = c.pass == Pass::kForward        ? elements_of(c.y)
                         : c.pass == Pass::kBackwardData ? elements_of(c.x)
                                                         : elements_of(c.w);
  std::vector<Accumulator> sums(count, 0);
  const auto number = [](T value) { return static_cast<Accumulator>(value); };
  for_each_product(c, [&](int64_t ix, int64_t iw, int64_t iy) {
    if (c.pass == Pass::kForward)
      sums[static_cast<std::size_t>(iy)] += number(x[ix]) * number(w[iw]);
    else if (c.pass == Pass::kBackwardData)
      sums[static_cast<std::size_t>(ix)] += number(y[iy]) * number(w[iw]);
    else
      sums[static_cast<std::size_t>(iw)] += number(y[iy]) * number(x[ix]);
  });
  T* out = c.pass == Pass::kForward ? y : c.pass == Pass::kBackwardData ? x : w;
  for (uint64_t i = 0; i < count; ++i) out[i] = from_computed<T>(sums[i]);
}

// Calls f with a null pointer of the type in memory and a zero of the type that sums have.
template <class F>
void with_type(int type, const F& f) {
  switch (type) {
    case kDnnDouble:
      return f(static_cast<double*>(nullptr), 0.0);
    case kDnnHalf:
      return f(static_cast<Float16*>(nullptr), 0.0f);
    case kDnnBfloat16:
      return f(static_cast<Bfloat16*>(nullptr), 0.0f);
    default:
      return f(static_cast<float*>(nullptr), 0.0f);
  }
}

}  // namespace

uint64_t dnn_type_bytes(int type) {
  switch (type) {
    case kDnnFloat:
      return 4;
    case kDnnDouble:
      return 8;
    case kDnnHalf:
    case kDnnBfloat16:
      return 2;
    default:
      return 0;
  }
}

uint64_t elements_of(const int (&shape)[4]) {
  uint64_t count = 1;
  for (int extent : shape) count *= static_cast<uint64_t>(extent);
  return count;
}

void run_convolution(const DnnConvolution& c, void* (*at)(const void*, uint64_t)) {
  const uint64_t bytes = dnn_type_bytes(c.type);
  void* x = at(c.x_data, elements_of(c.x) * bytes);
  void* w = at(c.w_data, elements_of(c.w) * bytes);
  void* y = at(c.y_data, elements_of(c.y) * bytes);
  if (!x || !w || !y) return;
  with_type(c.type, [&]<class T, class Accumulator>(T*, Accumulator) {
    convolve<T, Accumulator>(c, static_cast<T*>(x), static_cast<T*>(w), static_cast<T*>(y));
  });
}

void run_bias(const DnnBias& b, void* (*at)(const void*, uint64_t)) {
  const uint64_t bytes = dnn_type_bytes(b.type);
  void* bias = at(b.bias_data, static_cast<uint64_t>(b.y[1]) * bytes);
  void* y = at(b.y_data, elements_of(b.y) * bytes);
  if (!bias || !y) return;
  with_type(b.type, [&]<class T, class Accumulator>(T*, Accumulator) {
    const int64_t image = static_cast<int64_t>(b.y[2]) * b.y[3];
    for (int64_t i = 0; i < static_cast<int64_t>(elements_of(b.y)); ++i) {
      T& element = static_cast<T*>(y)[i];
      const T& added = static_cast<const T*>(bias)[i / image % b.y[1]];
      element =
          from_computed<T>(static_cast<Accumulator>(element) + static_cast<Accumulator>(added));
    }
  });
}

}  // namespace simulated
