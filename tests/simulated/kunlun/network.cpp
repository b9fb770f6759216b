// SPDX-License-Identifier: Apache-2.0
// Functions of xpu/refactor/nn.h and nn_pool.h: products, convolutions, pooling, shuffles, norms. Images are NCHW.
#include <cmath>

#include "xdnn.hpp"

namespace baidu::xpu::api {

template <typename TX, typename TW, typename TY, typename TGEMM>
XDNN_EXPORT int fc(Context* ctx, const TX* x, const TW* w, TY* y, int64_t m, int64_t n, int64_t k,
                   bool x_trans, bool w_trans, const float* x_maxptr, const float* w_maxptr,
                   float* y_maxptr) {
  XDNN_REQUIRE(m > 0 && n > 0 && k > 0 && !x_trans && !x_maxptr && !w_maxptr && !y_maxptr);
  return queue(ctx, "fc", {range(x, m * k), range(w, k * n), range(y, m * n)}, [=](char* const* bytes) {
    const auto* a = reinterpret_cast<const TX*>(bytes[0]);
    const auto* b = reinterpret_cast<const TW*>(bytes[1]);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += load(a[i * k + l]) * load(b[w_trans ? j * k + l : l * n + j]);
        store(reinterpret_cast<TY*>(bytes[2])[i * n + j], sum);
      }
  });
}

template <typename TX, typename TW, typename TY, typename TGEMM, int MAX_PTR_TYPE>
XDNN_EXPORT int fc_batched(Context* ctx, int64_t batch_size, bool x_trans, bool w_trans, int64_t m, int64_t n,
                           int64_t k, float alpha, const TX* x, int64_t stride_a, const TW* w, int64_t stride_b,
                           float beta, TY* y, int64_t stride_c, const float* x_maxptr, const float* w_maxptr) {
  XDNN_REQUIRE(batch_size > 0 && m > 0 && n > 0 && k > 0 && !x_trans && !w_trans);
  XDNN_REQUIRE(alpha == 1 && beta == 0 && !x_maxptr && !w_maxptr);
  XDNN_REQUIRE(stride_a >= m * k && stride_b >= k * n && stride_c >= m * n);
  return queue(ctx, "fc_batched",
               {range(x, (batch_size - 1) * stride_a + m * k), range(w, (batch_size - 1) * stride_b + k * n),
                range(y, (batch_size - 1) * stride_c + m * n)},
               [=](char* const* bytes) {
                 for (int64_t i = 0; i < batch_size * m * n; ++i) {
                   const int64_t column = i % n, row = i / n % m, of = i / (n * m);
                   double sum = 0;
                   for (int64_t l = 0; l < k; ++l)
                     sum += load(reinterpret_cast<const TX*>(bytes[0])[of * stride_a + row * k + l]) *
                            load(reinterpret_cast<const TW*>(bytes[1])[of * stride_b + l * n + column]);
                   store(reinterpret_cast<TY*>(bytes[2])[of * stride_c + row * n + column], sum);
                 }
               });
}
template XDNN_EXPORT int fc_batched<float, float, float, float, 0>(
    Context*, int64_t, bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
    float, float*, int64_t, const float*, const float*);

template <typename TX, typename TW, typename TY, typename TGEMM>
XDNN_EXPORT int conv2d(Context* ctx, const TX* x, const TW* weight, TY* y, int64_t n, int64_t c,
                       int64_t h, int64_t w, int64_t f, const Shape& ksize, const Shape& stride,
                       const Shape& pad, const Shape& dilation, int64_t group,
                       const float* x_maxptr, const float* weight_maxptr, float* y_maxptr,
                       bool is_nchw) {
  XDNN_REQUIRE(ksize.size() == 2 && stride.size() == 2 && dilation.size() == 2 && pad.size() == 2);
  XDNN_REQUIRE(is_nchw && !x_maxptr && !weight_maxptr && !y_maxptr && group > 0);
  XDNN_REQUIRE(is_shape({n, c, h, w, f}) && is_shape(ksize) && is_shape(stride) && is_shape(dilation));
  XDNN_REQUIRE(c % group == 0 && f % group == 0);
  const int64_t yh = (h + 2 * pad[0] - dilation[0] * (ksize[0] - 1) - 1) / stride[0] + 1;
  const int64_t yw = (w + 2 * pad[1] - dilation[1] * (ksize[1] - 1) - 1) / stride[1] + 1;
  XDNN_REQUIRE(yh > 0 && yw > 0);
  const int64_t per = c / group;
  return queue(
      ctx, "conv2d",
      {range(x, n * c * h * w), range(weight, f * per * ksize[0] * ksize[1]), range(y, n * f * yh * yw)},
      [=](char* const* bytes) {
        const auto* image = reinterpret_cast<const TX*>(bytes[0]);
        const auto* filter = reinterpret_cast<const TW*>(bytes[1]);
        auto* to = reinterpret_cast<TY*>(bytes[2]);
        for (int64_t i = 0; i < n * f * yh * yw; ++i) {
          const int64_t ox = i % yw, oy = i / yw % yh, of = i / (yw * yh) % f, on = i / (yw * yh * f);
          double sum = 0;
          for (int64_t ic = 0; ic < per; ++ic)
            for (int64_t ky = 0; ky < ksize[0]; ++ky)
              for (int64_t kx = 0; kx < ksize[1]; ++kx) {
                const int64_t iy = oy * stride[0] - pad[0] + ky * dilation[0];
                const int64_t ix = ox * stride[1] - pad[1] + kx * dilation[1];
                if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
                const int64_t channel = of / (f / group) * per + ic;
                sum += load(image[((on * c + channel) * h + iy) * w + ix]) *
                       load(filter[((of * per + ic) * ksize[0] + ky) * ksize[1] + kx]);
              }
          store(to[i], sum);
        }
      });
}
#define XDNN_GEMM(T)                                                                              \
  template XDNN_EXPORT int fc<T, T, T, float>(Context*, const T*, const T*, T*, int64_t, int64_t, \
                                              int64_t, bool, bool, const float*, const float*,    \
                                              float*);                                            \
  template XDNN_EXPORT int conv2d<T, T, T, float>(                                                \
      Context*, const T*, const T*, T*, int64_t, int64_t, int64_t, int64_t, int64_t, const Shape&, \
      const Shape&, const Shape&, const Shape&, int64_t, const float*, const float*, float*, bool);
XDNN_GEMM(float)
XDNN_GEMM(float16)

namespace {
// The mean of the elements of x in [y0, y1) x [x0, x1), divided by `count`.
template <class T, class Window>
int average(Context* ctx, const char* name, const T* x, T* y, int64_t planes, int64_t xh, int64_t xw,
            int64_t yh, int64_t yw, Window window) {
  return queue(ctx, name, {range(x, planes * xh * xw), range(y, planes * yh * yw)}, [=](char* const* bytes) {
    for (int64_t i = 0; i < planes * yh * yw; ++i) {
      int64_t y0, y1, x0, x1;
      double count, sum = 0;
      window(i / yw % yh, i % yw, &y0, &y1, &x0, &x1, &count);
      for (int64_t a = y0; a < y1; ++a)
        for (int64_t b = x0; b < x1; ++b)
          sum += load(reinterpret_cast<const T*>(bytes[0])[(i / (yh * yw) * xh + a) * xw + b]);
      store(reinterpret_cast<T*>(bytes[1])[i], sum / count);
    }
  });
}
}  // namespace

template <typename T>
XDNN_EXPORT int avg_pool2d(Context* ctx, const T* x, T* y, int64_t n, int64_t c, int64_t h, int64_t w,
                           const Shape& ksize, const Shape& stride, const Shape& pad,
                           bool count_include_pad, bool is_nchw, const float* x_maxptr, float* y_maxptr) {
  XDNN_REQUIRE(is_nchw && !x_maxptr && !y_maxptr && is_shape({n, c, h, w}));
  XDNN_REQUIRE(ksize.size() == 2 && stride.size() == 2 && pad.size() == 2);
  XDNN_REQUIRE(is_shape(ksize) && is_shape(stride));
  const int64_t yh = (h + 2 * pad[0] - ksize[0]) / stride[0] + 1;
  const int64_t yw = (w + 2 * pad[1] - ksize[1]) / stride[1] + 1;
  XDNN_REQUIRE(yh > 0 && yw > 0);
  return average(ctx, "avg_pool2d", x, y, n * c, h, w, yh, yw,
                 [=](int64_t oy, int64_t ox, int64_t* y0, int64_t* y1, int64_t* x0, int64_t* x1, double* count) {
                   const int64_t top = oy * stride[0] - pad[0], left = ox * stride[1] - pad[1];
                   *y0 = std::max<int64_t>(top, 0), *y1 = std::min(top + ksize[0], h);
                   *x0 = std::max<int64_t>(left, 0), *x1 = std::min(left + ksize[1], w);
                   *count = static_cast<double>(count_include_pad ? ksize[0] * ksize[1]
                                                                  : (*y1 - *y0) * (*x1 - *x0));
                 });
}

template <typename T>
XDNN_EXPORT int adaptive_avg_pool2d(Context* ctx, const T* x, T* y, int64_t n, int64_t c, int64_t xh,
                                    int64_t xw, int64_t yh, int64_t yw, bool is_nchw,
                                    const float* x_maxptr, float* y_maxptr) {
  XDNN_REQUIRE(is_nchw && !x_maxptr && !y_maxptr && is_shape({n, c, xh, xw, yh, yw}));
  return average(ctx, "adaptive_avg_pool2d", x, y, n * c, xh, xw, yh, yw,
                 [=](int64_t oy, int64_t ox, int64_t* y0, int64_t* y1, int64_t* x0, int64_t* x1, double* count) {
                   *y0 = oy * xh / yh, *y1 = ((oy + 1) * xh + yh - 1) / yh;
                   *x0 = ox * xw / yw, *x1 = ((ox + 1) * xw + yw - 1) / yw;
                   *count = static_cast<double>((*y1 - *y0) * (*x1 - *x0));
                 });
}

namespace {
// Copies each element of y from `source(image, channel, row, column)`, an index into one image of x.
template <class T, class Source>
int shuffle(Context* ctx, const char* name, const T* x, T* y, int64_t n, int64_t yc, int64_t yh,
            int64_t yw, Source source) {
  const int64_t count = n * yc * yh * yw;
  return queue(ctx, name, {range(x, count), range(y, count)}, [=](char* const* bytes) {
    for (int64_t i = 0; i < count; ++i)
      reinterpret_cast<T*>(bytes[1])[i] = reinterpret_cast<const T*>(
          bytes[0])[i / (yc * yh * yw) * yc * yh * yw + source(i / (yh * yw) % yc, i / yw % yh, i % yw)];
  });
}
}  // namespace

template <typename T>
XDNN_EXPORT int pixel_shuffle(Context* ctx, const T* x, T* y, int64_t n, int64_t xc, int64_t xh,
                              int64_t xw, int64_t r, bool is_nchw) {
  XDNN_REQUIRE(is_nchw && is_shape({n, xc, xh, xw, r}) && xc % (r * r) == 0);
  return shuffle(ctx, "pixel_shuffle", x, y, n, xc / (r * r), xh * r, xw * r,
                 [=](int64_t c, int64_t a, int64_t b) {
                   return (((c * r + a % r) * r + b % r) * xh + a / r) * xw + b / r;
                 });
}
template <typename T>
XDNN_EXPORT int pixel_unshuffle(Context* ctx, const T* x, T* y, int64_t n, int64_t xc, int64_t xh,
                                int64_t xw, int64_t r, bool is_nchw) {
  XDNN_REQUIRE(is_nchw && is_shape({n, xc, xh, xw, r}) && xh % r == 0 && xw % r == 0);
  return shuffle(ctx, "pixel_unshuffle", x, y, n, xc * r * r, xh / r, xw / r,
                 [=](int64_t c, int64_t a, int64_t b) {
                   return (c / (r * r) * xh + a * r + c / r % r) * xw + b * r + c % r;
                 });
}
template <typename T>
XDNN_EXPORT int channel_shuffle(Context* ctx, const T* x, T* y, int64_t n, int64_t xc, int64_t xh,
                                int64_t xw, int64_t group, bool is_nchw) {
  XDNN_REQUIRE(is_nchw && is_shape({n, xc, xh, xw, group}) && xc % group == 0);
  return shuffle(ctx, "channel_shuffle", x, y, n, xc, xh, xw, [=](int64_t c, int64_t a, int64_t b) {
    return ((c % group * (xc / group) + c / group) * xh + a) * xw + b;
  });
}

template <typename T>
XDNN_EXPORT int batch_norm_infer(Context* ctx, const T* x, T* y, int64_t n, int64_t c, int64_t h,
                                 int64_t w, float eps, const float* scale, const float* bias,
                                 const float* batch_mean, const float* batch_var, bool is_nchw) {
  XDNN_REQUIRE(is_nchw && is_shape({n, c, h, w}));
  const int64_t count = n * c * h * w;
  return queue(ctx, "batch_norm_infer",
               {range(x, count), range(y, count), range(scale, c), range(bias, c), range(batch_mean, c),
                range(batch_var, c)},
               [=](char* const* bytes) {
                 for (int64_t i = 0; i < count; ++i) {
                   const auto of = [&](int k) {
                     return static_cast<double>(reinterpret_cast<const float*>(bytes[k])[i / (h * w) % c]);
                   };
                   const double v = load(reinterpret_cast<const T*>(bytes[0])[i]);
                   store(reinterpret_cast<T*>(bytes[1])[i],
                         (v - of(4)) / std::sqrt(of(5) + static_cast<double>(eps)) * of(2) + of(3));
                 }
               });
}
template XDNN_EXPORT int batch_norm_infer<float>(Context*, const float*, float*, int64_t, int64_t, int64_t,
                                                 int64_t, float, const float*, const float*,
                                                 const float*, const float*, bool);

#define XDNN_IMAGES(T)                                                                              \
  template XDNN_EXPORT int avg_pool2d<T>(Context*, const T*, T*, int64_t, int64_t, int64_t, int64_t, \
                                         const Shape&, const Shape&, const Shape&, bool, bool,      \
                                         const float*, float*);                                     \
  template XDNN_EXPORT int adaptive_avg_pool2d<T>(Context*, const T*, T*, int64_t, int64_t, int64_t, \
                                                  int64_t, int64_t, int64_t, bool, const float*,    \
                                                  float*);                                          \
  template XDNN_EXPORT int pixel_shuffle<T>(Context*, const T*, T*, int64_t, int64_t, int64_t,      \
                                            int64_t, int64_t, bool);                                \
  template XDNN_EXPORT int pixel_unshuffle<T>(Context*, const T*, T*, int64_t, int64_t, int64_t,    \
                                              int64_t, int64_t, bool);                              \
  template XDNN_EXPORT int channel_shuffle<T>(Context*, const T*, T*, int64_t, int64_t, int64_t,    \
                                              int64_t, int64_t, bool);
XDNN_IMAGES(float)
XDNN_IMAGES(float16)

}  // namespace baidu::xpu::api
