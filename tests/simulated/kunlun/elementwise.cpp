// SPDX-License-Identifier: Apache-2.0
// Functions of xpu/refactor/math.h and nn_activation.h that take one element to one element.
#include <cmath>

#include "xdnn.hpp"

namespace baidu::xpu::api {
namespace {

template <class TX, class TY, class F>
int map(Context* ctx, const char* name, const TX* x, TY* y, int64_t len, F f) {
  return queue(ctx, name, {range(x, len), range(y, len)}, [=](char* const* bytes) {
    const auto* from = reinterpret_cast<const TX*>(bytes[0]);
    auto* to = reinterpret_cast<TY*>(bytes[1]);
    for (int64_t i = 0; i < len; ++i) store(to[i], f(load(from[i])));
  });
}

template <class T, class F>
int map2(Context* ctx, const char* name, const T* x, const T* y, T* z, int64_t len, F f) {
  return queue(ctx, name, {range(x, len), range(y, len), range(z, len)}, [=](char* const* bytes) {
    const auto *a = reinterpret_cast<const T*>(bytes[0]), *b = reinterpret_cast<const T*>(bytes[1]);
    auto* to = reinterpret_cast<T*>(bytes[2]);
    for (int64_t i = 0; i < len; ++i) store(to[i], f(load(a[i]), load(b[i])));
  });
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
// Newton's method on erf, from the first terms of the series of Winitzki.
double erfinv_of(double x) {
  if (!(x > -1 && x < 1)) return std::fabs(x) == 1 ? std::copysign(INFINITY, x) : NAN;
  const double a = 0.147, l = std::log1p(-x * x), t = 2 / (M_PI * a) + l / 2;
  double y = std::copysign(std::sqrt(std::sqrt(t * t - l / a) - t), x);
  for (int i = 0; i < 4; ++i)
    y -= (std::erf(y) - x) / (2 / std::sqrt(M_PI) * std::exp(-y * y));
  return y;
}

}  // namespace

#define XDNN_FLOATS(X) X(float) X(float16) X(bfloat16)
#define XDNN_NUMBERS(X) XDNN_FLOATS(X) X(int) X(int64_t)

// One function of x, and its instances.
#define XDNN_UNARY(NAME, TYPES, EXPRESSION)                                              \
  template <typename T>                                                                  \
  XDNN_EXPORT int NAME(Context* ctx, const T* x, T* y, int64_t len) {                    \
    return map(ctx, #NAME, x, y, len, [](auto v) { return EXPRESSION; });                \
  }                                                                                      \
  TYPES(XDNN_UNARY_##NAME)
#define XDNN_UNARY_INSTANCE(NAME, T) \
  template XDNN_EXPORT int NAME<T>(Context*, const T*, T*, int64_t);

#define XDNN_UNARY_abs(T) XDNN_UNARY_INSTANCE(abs, T)
XDNN_UNARY(abs, XDNN_NUMBERS, (v < 0 ? -v : v + 0))
#define XDNN_UNARY_neg(T) XDNN_UNARY_INSTANCE(neg, T)
XDNN_UNARY(neg, XDNN_NUMBERS, (-v))
#define XDNN_UNARY_sign(T) XDNN_UNARY_INSTANCE(sign, T)
XDNN_UNARY(sign, XDNN_NUMBERS, (v > 0 ? decltype(v)(1) : v < 0 ? decltype(v)(-1) : v))
#define XDNN_UNARY_exp(T) XDNN_UNARY_INSTANCE(exp, T)
XDNN_UNARY(exp, XDNN_FLOATS, std::exp(v))
#define XDNN_UNARY_exp2(T) XDNN_UNARY_INSTANCE(exp2, T)
XDNN_UNARY(exp2, XDNN_FLOATS, std::exp2(v))
#define XDNN_UNARY_log(T) XDNN_UNARY_INSTANCE(log, T)
XDNN_UNARY(log, XDNN_FLOATS, std::log(v))
#define XDNN_UNARY_log1p(T) XDNN_UNARY_INSTANCE(log1p, T)
XDNN_UNARY(log1p, XDNN_FLOATS, std::log1p(v))
#define XDNN_UNARY_sqrt(T) XDNN_UNARY_INSTANCE(sqrt, T)
XDNN_UNARY(sqrt, XDNN_FLOATS, std::sqrt(v))
#define XDNN_UNARY_rsqrt(T) XDNN_UNARY_INSTANCE(rsqrt, T)
XDNN_UNARY(rsqrt, XDNN_FLOATS, (1 / std::sqrt(v)))
#define XDNN_UNARY_square(T) XDNN_UNARY_INSTANCE(square, T)
XDNN_UNARY(square, XDNN_FLOATS, (v * v))
#define XDNN_UNARY_reciprocal(T) XDNN_UNARY_INSTANCE(reciprocal, T)
XDNN_UNARY(reciprocal, XDNN_FLOATS, (1 / v))
#define XDNN_UNARY_erf(T) XDNN_UNARY_INSTANCE(erf, T)
XDNN_UNARY(erf, XDNN_FLOATS, std::erf(v))
#define XDNN_UNARY_erfinv(T) XDNN_UNARY_INSTANCE(erfinv, T)
XDNN_UNARY(erfinv, XDNN_FLOATS, erfinv_of(v))
#define XDNN_UNARY_floor(T) XDNN_UNARY_INSTANCE(floor, T)
XDNN_UNARY(floor, XDNN_FLOATS, std::floor(v))
#define XDNN_UNARY_ceil(T) XDNN_UNARY_INSTANCE(ceil, T)
XDNN_UNARY(ceil, XDNN_FLOATS, std::ceil(v))
#define XDNN_UNARY_sin(T) XDNN_UNARY_INSTANCE(sin, T)
XDNN_UNARY(sin, XDNN_FLOATS, std::sin(v))
#define XDNN_UNARY_cos(T) XDNN_UNARY_INSTANCE(cos, T)
XDNN_UNARY(cos, XDNN_FLOATS, std::cos(v))
#define XDNN_UNARY_tan(T) XDNN_UNARY_INSTANCE(tan, T)
XDNN_UNARY(tan, XDNN_FLOATS, std::tan(v))
#define XDNN_UNARY_arcsin(T) XDNN_UNARY_INSTANCE(arcsin, T)
XDNN_UNARY(arcsin, XDNN_FLOATS, std::asin(v))
#define XDNN_UNARY_arccos(T) XDNN_UNARY_INSTANCE(arccos, T)
XDNN_UNARY(arccos, XDNN_FLOATS, std::acos(v))
#define XDNN_UNARY_arctan(T) XDNN_UNARY_INSTANCE(arctan, T)
XDNN_UNARY(arctan, XDNN_FLOATS, std::atan(v))
#define XDNN_UNARY_sinh(T) XDNN_UNARY_INSTANCE(sinh, T)
XDNN_UNARY(sinh, XDNN_FLOATS, std::sinh(v))
#define XDNN_UNARY_cosh(T) XDNN_UNARY_INSTANCE(cosh, T)
XDNN_UNARY(cosh, XDNN_FLOATS, std::cosh(v))
#define XDNN_UNARY_asinh(T) XDNN_UNARY_INSTANCE(asinh, T)
XDNN_UNARY(asinh, XDNN_FLOATS, std::asinh(v))
#define XDNN_UNARY_acosh(T) XDNN_UNARY_INSTANCE(acosh, T)
XDNN_UNARY(acosh, XDNN_FLOATS, std::acosh(v))
#define XDNN_UNARY_atanh(T) XDNN_UNARY_INSTANCE(atanh, T)
XDNN_UNARY(atanh, XDNN_FLOATS, std::atanh(v))
#define XDNN_BOOL(X) X(bool)
#define XDNN_UNARY_logical_not(T) XDNN_UNARY_INSTANCE(logical_not, T)
XDNN_UNARY(logical_not, XDNN_BOOL, (v == 0))
#define XDNN_ALL(X) XDNN_NUMBERS(X) X(int8_t) X(uint8_t) X(int16_t) X(bool)
#define XDNN_UNARY_copy(T) XDNN_UNARY_INSTANCE(copy, T)
XDNN_UNARY(copy, XDNN_ALL, v)

// Activations of x alone have the largest magnitudes of x and y as optional parameters at the end.
#define XDNN_ACTIVATION(NAME, EXPRESSION)                                                     \
  template <typename T>                                                                       \
  XDNN_EXPORT int NAME(Context* ctx, const T* x, T* y, int64_t len, const float* max_x,       \
                       float* max_y) {                                                        \
    XDNN_REQUIRE(!max_x && !max_y);                                                           \
    return map(ctx, #NAME, x, y, len, [](double v) { return EXPRESSION; });                   \
  }                                                                                           \
  template XDNN_EXPORT int NAME<float>(Context*, const float*, float*, int64_t, const float*, \
                                       float*);                                               \
  template XDNN_EXPORT int NAME<float16>(Context*, const float16*, float16*, int64_t,         \
                                         const float*, float*);
XDNN_ACTIVATION(relu, (v < 0 ? 0 : v))
XDNN_ACTIVATION(relu6, (v < 0 ? 0 : v > 6 ? 6 : v))
XDNN_ACTIVATION(sigmoid, sigmoid_of(v))
XDNN_ACTIVATION(tanh, std::tanh(v))
XDNN_ACTIVATION(swish, (v * sigmoid_of(v)))
XDNN_ACTIVATION(gelu, (0.5 * v * std::erfc(-v * M_SQRT1_2)))
XDNN_ACTIVATION(approximate_gelu,
                (0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)))))
XDNN_ACTIVATION(softsign, (v / (1 + std::fabs(v))))
XDNN_ACTIVATION(hard_swish, (v * std::fmin(std::fmax(v + 3, 0), 6) / 6))
XDNN_ACTIVATION(log_sigmoid, (-softplus_of(-v)))

// The same with one parameter more, and with two.
#define XDNN_ACTIVATION_1(NAME, EXPRESSION)                                                \
  template <typename T>                                                                    \
  XDNN_EXPORT int NAME(Context* ctx, const T* x, T* y, int64_t len, float a,               \
                       const float* max_x, float* max_y) {                                 \
    XDNN_REQUIRE(!max_x && !max_y);                                                        \
    return map(ctx, #NAME, x, y, len, [=](double v) { return EXPRESSION; });               \
  }                                                                                        \
  template XDNN_EXPORT int NAME<float>(Context*, const float*, float*, int64_t, float,     \
                                       const float*, float*);                              \
  template XDNN_EXPORT int NAME<float16>(Context*, const float16*, float16*, int64_t, float, \
                                         const float*, float*);
XDNN_ACTIVATION_1(elu, (v < 0 ? a * std::expm1(v) : v))
XDNN_ACTIVATION_1(celu, (v < 0 ? a * std::expm1(v / a) : v))
XDNN_ACTIVATION_1(leaky_relu, (v < 0 ? a * v : v))
XDNN_ACTIVATION_1(mish, (v * std::tanh(v > a ? v : softplus_of(v))))
XDNN_ACTIVATION_1(hard_shrink, (v >= -a && v <= a ? 0 : v))
XDNN_ACTIVATION_1(soft_shrink, (v > a ? v - a : v < -a ? v + a : v - v))
#define XDNN_ACTIVATION_2(NAME, EXPRESSION)                                                    \
  template <typename T>                                                                        \
  XDNN_EXPORT int NAME(Context* ctx, const T* x, T* y, int64_t len, float a, float b,          \
                       const float* max_x, float* max_y) {                                     \
    XDNN_REQUIRE(!max_x && !max_y);                                                            \
    return map(ctx, #NAME, x, y, len, [=](double v) { return EXPRESSION; });                   \
  }                                                                                            \
  template XDNN_EXPORT int NAME<float>(Context*, const float*, float*, int64_t, float, float,  \
                                       const float*, float*);                                  \
  template XDNN_EXPORT int NAME<float16>(Context*, const float16*, float16*, int64_t, float,   \
                                         float, const float*, float*);
XDNN_ACTIVATION_2(selu, (v < 0 ? a * b * std::expm1(v) : a * v))
XDNN_ACTIVATION_2(softplus, (a * v > b ? v : softplus_of(a * v) / a))
XDNN_ACTIVATION_2(hard_tanh, (v < a ? a : v > b ? b : v))
XDNN_ACTIVATION_2(threshold, (v <= a ? b : v))

// The gradients of these are made of y, whatever x is.
#define XDNN_GRADIENT_OF_Y(NAME, EXPRESSION)                                               \
  template <typename T>                                                                    \
  XDNN_EXPORT int NAME(Context* ctx, const T*, const T* y, const T* dy, T* dx, int64_t len) { \
    return map2(ctx, #NAME, y, dy, dx, len, [](double v, double d) { return EXPRESSION; });  \
  }                                                                                        \
  template XDNN_EXPORT int NAME<float>(Context*, const float*, const float*, const float*, \
                                       float*, int64_t);                                   \
  template XDNN_EXPORT int NAME<float16>(Context*, const float16*, const float16*,         \
                                         const float16*, float16*, int64_t);
XDNN_GRADIENT_OF_Y(relu_grad, (v > 0 ? d : 0))
XDNN_GRADIENT_OF_Y(sigmoid_grad, (d * v * (1 - v)))
XDNN_GRADIENT_OF_Y(tanh_grad, (d * (1 - v * v)))

#define XDNN_BINARY(NAME, T, EXPRESSION)                                                     \
  template <typename TT>                                                                     \
  XDNN_EXPORT int NAME(Context* ctx, const TT* x, const TT* y, TT* z, int64_t len) {         \
    return map2(ctx, #NAME, x, y, z, len, [](auto a, auto b) { return EXPRESSION; });        \
  }                                                                                          \
  template XDNN_EXPORT int NAME<T>(Context*, const T*, const T*, T*, int64_t);
XDNN_BINARY(logical_and, bool, (a && b))
XDNN_BINARY(logical_or, bool, (a || b))
XDNN_BINARY(logical_xor, bool, ((a != 0) != (b != 0)))
XDNN_BINARY(arctan2, float, std::atan2(a, b))

template <typename T>
XDNN_EXPORT int swish_grad(Context* ctx, const T* x, const T* dy, T* dx, int64_t len) {
  return map2(ctx, "swish_grad", x, dy, dx, len, [](double v, double d) {
    const double s = sigmoid_of(v);
    return d * s * (1 + v * (1 - s));
  });
}
template XDNN_EXPORT int swish_grad<float>(Context*, const float*, const float*, float*, int64_t);
template XDNN_EXPORT int swish_grad<float16>(Context*, const float16*, const float16*, float16*,
                                             int64_t);

template <typename T>
XDNN_EXPORT int isnan(Context* ctx, const T* x, bool* y, int64_t len) {
  return map(ctx, "isnan", x, y, len, [](double v) { return v != v; });
}
template <typename T>
XDNN_EXPORT int isfinite(Context* ctx, const T* x, bool* y, int64_t len) {
  return map(ctx, "isfinite", x, y, len, [](double v) { return std::isfinite(v); });
}
#define XDNN_TESTS(T)                                                        \
  template XDNN_EXPORT int isnan<T>(Context*, const T*, bool*, int64_t);     \
  template XDNN_EXPORT int isfinite<T>(Context*, const T*, bool*, int64_t);
XDNN_FLOATS(XDNN_TESTS)

template <typename TX, typename TY>
XDNN_EXPORT int cast(Context* ctx, const TX* x, TY* y, int64_t len) {
  return map(ctx, "cast", x, y, len, [](auto v) { return v; });
}
#define XDNN_CAST(TX, TY) \
  template XDNN_EXPORT int cast<TX, TY>(Context*, const TX*, TY*, int64_t);
#define XDNN_CASTS(TX)                                                                       \
  XDNN_CAST(TX, float) XDNN_CAST(TX, float16) XDNN_CAST(TX, bfloat16) XDNN_CAST(TX, int8_t)  \
  XDNN_CAST(TX, uint8_t) XDNN_CAST(TX, int16_t) XDNN_CAST(TX, int) XDNN_CAST(TX, int64_t)    \
  XDNN_CAST(TX, bool)
XDNN_ALL(XDNN_CASTS)

// Number i is begin + i * step.
template <typename T>
XDNN_EXPORT int range(Context* ctx, T* y, T begin, T step, int64_t len) {
  return queue(ctx, "range", {range(y, len)}, [=](char* const* bytes) {
    for (int64_t i = 0; i < len; ++i)
      store(reinterpret_cast<T*>(bytes[0])[i], load(begin) + static_cast<Wide<T>>(i) * load(step));
  });
}
template XDNN_EXPORT int range<float>(Context*, float*, float, float, int64_t);
template XDNN_EXPORT int range<int>(Context*, int*, int, int, int64_t);
template XDNN_EXPORT int range<int64_t>(Context*, int64_t*, int64_t, int64_t, int64_t);

template <typename T>
XDNN_EXPORT int constant(Context* ctx, T* x, int64_t len, T val) {
  return queue(ctx, "constant", {range(x, len)}, [=](char* const* bytes) {
    for (int64_t i = 0; i < len; ++i) reinterpret_cast<T*>(bytes[0])[i] = val;
  });
}
#define XDNN_CONSTANT(T) template XDNN_EXPORT int constant<T>(Context*, T*, int64_t, T);
XDNN_CONSTANT(float) XDNN_CONSTANT(int) XDNN_CONSTANT(int64_t) XDNN_CONSTANT(bool)

}  // namespace baidu::xpu::api
