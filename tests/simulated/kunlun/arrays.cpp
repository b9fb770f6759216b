// SPDX-License-Identifier: Apache-2.0
// Functions of xpu/refactor/math.h, nn.h and nn_activation.h that work on shapes: broadcasting, reductions, scans,
// softmax, joins.
#include <algorithm>
#include <cmath>
#include <limits>

#include "xdnn.hpp"

namespace baidu::xpu::api {
namespace {

template <class T, class TZ, class F>
int broadcast2(Context* ctx, const char* name, const T* x, const T* y, TZ* z, const Shape& xshape,
               const Shape& yshape, F f) {
  const Shape shape = broadcast_shape(xshape, yshape);
  XDNN_REQUIRE(!shape.empty());
  const int64_t n = numel(shape);
  return queue(ctx, name, {range(x, numel(xshape)), range(y, numel(yshape)), range(z, n)},
               [=](char* const* bytes) {
                 const auto* a = reinterpret_cast<const T*>(bytes[0]);
                 const auto* b = reinterpret_cast<const T*>(bytes[1]);
                 auto* to = reinterpret_cast<TZ*>(bytes[2]);
                 for (int64_t i = 0; i < n; ++i)
                   store(to[i], f(load(a[broadcast_index(i, xshape, shape)]),
                                  load(b[broadcast_index(i, yshape, shape)])));
               });
}

// An axis of a shape as three extents: before, along, behind.
struct Split {
  int64_t outer = 1, length = 1, inner = 1;
};
bool split(const Shape& shape, int64_t axis, Split* out) {
  if (!is_shape(shape) || axis < 0 || axis >= static_cast<int64_t>(shape.size())) return false;
  const auto at = shape.begin() + axis;
  *out = {numel({shape.begin(), at}), *at, numel({at + 1, shape.end()})};
  return true;
}

// f gets the elements of one line, in double or int64_t, and the memory for the results of the line.
template <class T, class TY, class F>
int along(Context* ctx, const char* name, const T* x, TY* y, const Shape& xshape, int64_t axis,
          int64_t results, F f) {
  Split s;
  XDNN_REQUIRE(split(xshape, axis, &s));
  return queue(ctx, name, {range(x, numel(xshape)), range(y, s.outer * results * s.inner)},
               [=](char* const* bytes) {
                 const auto* from = reinterpret_cast<const T*>(bytes[0]);
                 auto* to = reinterpret_cast<TY*>(bytes[1]);
                 std::vector<Wide<T>> line(static_cast<size_t>(s.length));
                 std::vector<Wide<TY>> result(static_cast<size_t>(results));
                 for (int64_t o = 0; o < s.outer; ++o)
                   for (int64_t i = 0; i < s.inner; ++i) {
                     for (int64_t k = 0; k < s.length; ++k)
                       line[k] = load(from[(o * s.length + k) * s.inner + i]);
                     f(line, result);
                     for (int64_t k = 0; k < results; ++k)
                       store(to[(o * results + k) * s.inner + i], result[k]);
                   }
               });
}

// f(first) starts, f(so far, next) goes on, and finish(result, how many) ends.
template <class T, class Start, class Next, class Finish>
int reduce(Context* ctx, const char* name, const T* x, T* y, const Shape& xshape,
           const Shape& rdims, Start start, Next next, Finish finish) {
  XDNN_REQUIRE(is_shape(xshape) && !rdims.empty());
  Shape kept = xshape;
  for (int64_t axis : rdims) {
    XDNN_REQUIRE(axis >= 0 && axis < static_cast<int64_t>(xshape.size()));
    kept[axis] = 1;
  }
  const int64_t n = numel(xshape), results = numel(kept);
  return queue(ctx, name, {range(x, n), range(y, results)}, [=](char* const* bytes) {
    const auto* from = reinterpret_cast<const T*>(bytes[0]);
    auto* to = reinterpret_cast<T*>(bytes[1]);
    std::vector<Wide<T>> sums(static_cast<size_t>(results));
    std::vector<char> begun(static_cast<size_t>(results));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = broadcast_index(i, kept, xshape);
      sums[at] = begun[at] ? next(sums[at], load(from[i])) : start(load(from[i]));
      begun[at] = 1;
    }
    for (int64_t i = 0; i < results; ++i) store(to[i], finish(sums[i], n / results));
  });
}

const auto same = [](auto v) { return v; };
const auto plain = [](auto v, int64_t) { return v; };
const auto add2 = [](auto a, auto b) { return a + b; };
template <class V>
V larger(V a, V b) {
  return a != a ? a : b != b ? b : std::max(a, b);
}
template <class V>
V smaller(V a, V b) {
  return a != a ? a : b != b ? b : std::min(a, b);
}

}  // namespace

#define XDNN_NUMBERS(X) X(float) X(float16) X(int) X(int64_t)
#define XDNN_FLOATS(X) X(float) X(float16)
#define XDNN_FLOAT(X) X(float)

#define XDNN_BROADCAST(NAME, TYPES, TZ, EXPRESSION)                                      \
  template <typename T>                                                                  \
  XDNN_EXPORT int NAME(Context* ctx, const T* x, const T* y, TZ* z, const Shape& xshape, \
                       const Shape& yshape) {                                            \
    return broadcast2(ctx, #NAME, x, y, z, xshape, yshape,                               \
                      [](auto a, auto b) { return EXPRESSION; });                        \
  }                                                                                      \
  TYPES(XDNN_INSTANCE_##NAME)
#define XDNN_BROADCAST_INSTANCE(NAME, T, TZ) \
  template XDNN_EXPORT int NAME<T>(Context*, const T*, const T*, TZ*, const Shape&, const Shape&);
#define XDNN_INSTANCE_broadcast_add(T) XDNN_BROADCAST_INSTANCE(broadcast_add, T, T)
XDNN_BROADCAST(broadcast_add, XDNN_NUMBERS, T, (a + b))
#define XDNN_INSTANCE_broadcast_sub(T) XDNN_BROADCAST_INSTANCE(broadcast_sub, T, T)
XDNN_BROADCAST(broadcast_sub, XDNN_NUMBERS, T, (a - b))
#define XDNN_INSTANCE_broadcast_mul(T) XDNN_BROADCAST_INSTANCE(broadcast_mul, T, T)
XDNN_BROADCAST(broadcast_mul, XDNN_NUMBERS, T, (a * b))
#define XDNN_INSTANCE_broadcast_div(T) XDNN_BROADCAST_INSTANCE(broadcast_div, T, T)
XDNN_BROADCAST(broadcast_div, XDNN_FLOATS, T, (a / b))
#define XDNN_INSTANCE_broadcast_pow(T) XDNN_BROADCAST_INSTANCE(broadcast_pow, T, T)
XDNN_BROADCAST(broadcast_pow, XDNN_FLOAT, T, std::pow(a, b))
#define XDNN_INSTANCE_broadcast_max(T) XDNN_BROADCAST_INSTANCE(broadcast_max, T, T)
XDNN_BROADCAST(broadcast_max, XDNN_NUMBERS, T, larger(a, b))
#define XDNN_INSTANCE_broadcast_min(T) XDNN_BROADCAST_INSTANCE(broadcast_min, T, T)
XDNN_BROADCAST(broadcast_min, XDNN_NUMBERS, T, smaller(a, b))
#define XDNN_INSTANCE_broadcast_equal(T) XDNN_BROADCAST_INSTANCE(broadcast_equal, T, bool)
#define XDNN_COMPARED(X) XDNN_NUMBERS(X) X(bool) X(int8_t) X(uint8_t) X(int16_t)
XDNN_BROADCAST(broadcast_equal, XDNN_COMPARED, bool, (a == b))
#define XDNN_INSTANCE_broadcast_not_equal(T) XDNN_BROADCAST_INSTANCE(broadcast_not_equal, T, bool)
XDNN_BROADCAST(broadcast_not_equal, XDNN_COMPARED, bool, (a != b))
#define XDNN_INSTANCE_broadcast_less_than(T) XDNN_BROADCAST_INSTANCE(broadcast_less_than, T, bool)
XDNN_BROADCAST(broadcast_less_than, XDNN_COMPARED, bool, (a < b))
#define XDNN_INSTANCE_broadcast_less_equal(T) XDNN_BROADCAST_INSTANCE(broadcast_less_equal, T, bool)
XDNN_BROADCAST(broadcast_less_equal, XDNN_COMPARED, bool, (a <= b))
#define XDNN_INSTANCE_broadcast_greater_than(T) \
  XDNN_BROADCAST_INSTANCE(broadcast_greater_than, T, bool)
XDNN_BROADCAST(broadcast_greater_than, XDNN_COMPARED, bool, (a > b))
#define XDNN_INSTANCE_broadcast_greater_equal(T) \
  XDNN_BROADCAST_INSTANCE(broadcast_greater_equal, T, bool)
XDNN_BROADCAST(broadcast_greater_equal, XDNN_COMPARED, bool, (a >= b))

template <typename T>
XDNN_EXPORT int lerp(Context* ctx, const T* x, const T* y, const T* w, T* z, const Shape& xshape,
                     const Shape& yshape, const Shape& wshape) {
  const Shape two = broadcast_shape(xshape, yshape);
  const Shape shape = broadcast_shape(two, wshape);
  XDNN_REQUIRE(!two.empty() && !shape.empty());
  const int64_t n = numel(shape);
  return queue(
      ctx, "lerp",
      {range(x, numel(xshape)), range(y, numel(yshape)), range(w, numel(wshape)), range(z, n)},
      [=](char* const* bytes) {
        for (int64_t i = 0; i < n; ++i) {
          const auto at = [&](int k, const Shape& of) {
            return load(reinterpret_cast<const T*>(bytes[k])[broadcast_index(i, of, shape)]);
          };
          const double a = at(0, xshape), b = at(1, yshape), c = at(2, wshape);
          store(reinterpret_cast<T*>(bytes[3])[i],
                c < 0.5 ? a + c * (b - a) : b - (b - a) * (1 - c));
        }
      });
}
#define XDNN_LERP(T)                                                                         \
  template XDNN_EXPORT int lerp<T>(Context*, const T*, const T*, const T*, T*, const Shape&, \
                                   const Shape&, const Shape&);
XDNN_FLOATS(XDNN_LERP)

template <typename T>
XDNN_EXPORT int select(Context* ctx, const bool* condition, const T* x, const T* y, T* z,
                       const Shape& condition_shape, const Shape& xshape) {
  XDNN_REQUIRE(is_shape(xshape) && broadcast_shape(condition_shape, xshape) == xshape);
  const int64_t n = numel(xshape);
  return queue(ctx, "select",
               {range(condition, numel(condition_shape)), range(x, n), range(y, n), range(z, n)},
               [=](char* const* bytes) {
                 for (int64_t i = 0; i < n; ++i)
                   reinterpret_cast<T*>(bytes[3])[i] = reinterpret_cast<const T*>(
                       bytes[bytes[0][broadcast_index(i, condition_shape, xshape)] ? 1 : 2])[i];
               });
}
#define XDNN_SELECT(T)                                                                            \
  template XDNN_EXPORT int select<T>(Context*, const bool*, const T*, const T*, T*, const Shape&, \
                                     const Shape&);
XDNN_NUMBERS(XDNN_SELECT)
XDNN_SELECT(bool)

#define XDNN_REDUCE(NAME, TYPES, START, NEXT, FINISH)                                             \
  template <typename T>                                                                           \
  XDNN_EXPORT int NAME(Context* ctx, const T* x, T* y, const Shape& xshape, const Shape& rdims) { \
    return reduce(ctx, #NAME, x, y, xshape, rdims, START, NEXT, FINISH);                          \
  }                                                                                               \
  TYPES(XDNN_INSTANCE_##NAME)
#define XDNN_REDUCE_INSTANCE(NAME, T) \
  template XDNN_EXPORT int NAME<T>(Context*, const T*, T*, const Shape&, const Shape&);
#define XDNN_BOOL(X) X(bool)
#define XDNN_INSTANCE_reduce_sum(T) XDNN_REDUCE_INSTANCE(reduce_sum, T)
XDNN_REDUCE(reduce_sum, XDNN_NUMBERS, same, add2, plain)
#define XDNN_INSTANCE_reduce_mean(T) XDNN_REDUCE_INSTANCE(reduce_mean, T)
XDNN_REDUCE(reduce_mean, XDNN_FLOATS, same, add2, ([](auto v, int64_t n) { return v / n; }))
#define XDNN_INSTANCE_reduce_max(T) XDNN_REDUCE_INSTANCE(reduce_max, T)
XDNN_REDUCE(reduce_max, XDNN_NUMBERS, same, ([](auto a, auto b) { return larger(a, b); }), plain)
#define XDNN_INSTANCE_reduce_min(T) XDNN_REDUCE_INSTANCE(reduce_min, T)
XDNN_REDUCE(reduce_min, XDNN_NUMBERS, same, ([](auto a, auto b) { return smaller(a, b); }), plain)
#define XDNN_INSTANCE_reduce_prod(T) XDNN_REDUCE_INSTANCE(reduce_prod, T)
#define XDNN_PRODUCTS(X) X(float) X(int) X(int64_t)
XDNN_REDUCE(reduce_prod, XDNN_PRODUCTS, same, ([](auto a, auto b) { return a * b; }), plain)
#define XDNN_INSTANCE_reduce_all(T) XDNN_REDUCE_INSTANCE(reduce_all, T)
XDNN_REDUCE(reduce_all, XDNN_BOOL, same, ([](auto a, auto b) { return a && b; }), plain)
#define XDNN_INSTANCE_reduce_any(T) XDNN_REDUCE_INSTANCE(reduce_any, T)
XDNN_REDUCE(reduce_any, XDNN_BOOL, same, ([](auto a, auto b) { return a || b; }), plain)

namespace {
double log_add(double a, double b) {
  const double high = larger(a, b), low = smaller(a, b);
  return std::isinf(high) || std::isnan(high) ? high : high + std::log1p(std::exp(low - high));
}
}  // namespace
#define XDNN_INSTANCE_logsumexp(T) XDNN_REDUCE_INSTANCE(logsumexp, T)
XDNN_REDUCE(logsumexp, XDNN_FLOAT, same, ([](double a, double b) { return log_add(a, b); }), plain)

template <typename T>
XDNN_EXPORT int norm(Context* ctx, const T* x, T* y, const Shape& xshape, const Shape& dim,
                     float p) {
  XDNN_REQUIRE(p == 2);
  return reduce(
      ctx, "norm", x, y, xshape, dim, [](double v) { return v * v; },
      [](double a, double v) { return a + v * v; }, [](double v, int64_t) { return std::sqrt(v); });
}
template XDNN_EXPORT int norm<float>(Context*, const float*, float*, const Shape&, const Shape&,
                                     float);

template <typename TX, typename TY>
XDNN_EXPORT int argmax(Context* ctx, const TX* x, TY* y, const Shape& xshape, int64_t axis) {
  return along(ctx, "argmax", x, y, xshape, axis, 1, [](const auto& line, auto& result) {
    size_t best = 0;
    for (size_t k = 1; k < line.size(); ++k)
      if (line[best] == line[best] && (line[k] != line[k] || line[k] > line[best])) best = k;
    result[0] = static_cast<int64_t>(best);
  });
}
template <typename TX, typename TY>
XDNN_EXPORT int argmin(Context* ctx, const TX* x, TY* y, const Shape& xshape, int64_t axis) {
  return along(ctx, "argmin", x, y, xshape, axis, 1, [](const auto& line, auto& result) {
    size_t best = 0;
    for (size_t k = 1; k < line.size(); ++k)
      if (line[best] == line[best] && (line[k] != line[k] || line[k] < line[best])) best = k;
    result[0] = static_cast<int64_t>(best);
  });
}
#define XDNN_ARG(T)                                                                       \
  template XDNN_EXPORT int argmax<T, int64_t>(Context*, const T*, int64_t*, const Shape&, \
                                              int64_t);                                   \
  template XDNN_EXPORT int argmin<T, int64_t>(Context*, const T*, int64_t*, const Shape&, int64_t);
XDNN_FLOATS(XDNN_ARG)

namespace {
template <class T, class F>
int scan(Context* ctx, const char* name, const T* x, T* y, const Shape& xshape, bool reverse,
         int64_t axis, F next) {
  const int64_t length = axis >= 0 && axis < static_cast<int64_t>(xshape.size()) ? xshape[axis] : 0;
  return along(ctx, name, x, y, xshape, axis, length, [=](const auto& line, auto& result) {
    const auto n = static_cast<int64_t>(line.size());
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = reverse ? n - 1 - k : k, before = reverse ? at + 1 : at - 1;
      result[at] = k ? next(result[before], line[at]) : line[at];
    }
  });
}
}  // namespace
template <typename T>
XDNN_EXPORT int cumsum(Context* ctx, const T* x, T* y, const Shape& xshape, bool reverse,
                       bool exclusive, int64_t axis) {
  XDNN_REQUIRE(!exclusive);
  return scan(ctx, "cumsum", x, y, xshape, reverse, axis, add2);
}
template <typename T>
XDNN_EXPORT int cumprod(Context* ctx, const T* x, T* y, const Shape& xshape, int64_t axis) {
  return scan(ctx, "cumprod", x, y, xshape, false, axis, [](auto a, auto b) { return a * b; });
}
template <typename T>
XDNN_EXPORT int logcumsumexp(Context* ctx, const T* x, T* y, const Shape& xshape, bool reverse,
                             bool exclusive, int64_t axis) {
  XDNN_REQUIRE(!exclusive);
  return scan(ctx, "logcumsumexp", x, y, xshape, reverse, axis, log_add);
}
template XDNN_EXPORT int cumsum<float>(Context*, const float*, float*, const Shape&, bool, bool,
                                       int64_t);
template XDNN_EXPORT int cumsum<float16>(Context*, const float16*, float16*, const Shape&, bool,
                                         bool, int64_t);
template XDNN_EXPORT int cumprod<float>(Context*, const float*, float*, const Shape&, int64_t);
template XDNN_EXPORT int logcumsumexp<float>(Context*, const float*, float*, const Shape&, bool,
                                             bool, int64_t);

namespace {
template <class T>
int softmax_line(Context* ctx, const char* name, const T* x, T* y, const Shape& xshape,
                 int64_t axis, bool is_log) {
  const int64_t length = axis >= 0 && axis < static_cast<int64_t>(xshape.size()) ? xshape[axis] : 0;
  return along(ctx, name, x, y, xshape, axis, length, [=](const auto& line, auto& result) {
    double high = line[0], sum = 0;
    for (double v : line) high = larger(high, v);
    for (double v : line) sum += std::exp(v - high);
    for (size_t k = 0; k < line.size(); ++k)
      result[k] = is_log ? line[k] - high - std::log(sum) : std::exp(line[k] - high) / sum;
  });
}
template <class T>
int softmax_gradient(Context* ctx, const char* name, const T* y, const T* dy, T* dx,
                     const Shape& xshape, int64_t axis, bool is_log) {
  Split s;
  XDNN_REQUIRE(split(xshape, axis, &s));
  const int64_t n = numel(xshape);
  return queue(ctx, name, {range(y, n), range(dy, n), range(dx, n)}, [=](char* const* bytes) {
    const auto *of = reinterpret_cast<const T*>(bytes[0]),
               *d = reinterpret_cast<const T*>(bytes[1]);
    auto* to = reinterpret_cast<T*>(bytes[2]);
    for (int64_t o = 0; o < s.outer; ++o)
      for (int64_t i = 0; i < s.inner; ++i) {
        const auto at = [&](int64_t k) { return (o * s.length + k) * s.inner + i; };
        double sum = 0;
        for (int64_t k = 0; k < s.length; ++k)
          sum += load(d[at(k)]) * (is_log ? 1 : load(of[at(k)]));
        for (int64_t k = 0; k < s.length; ++k) {
          const double g = load(d[at(k)]), v = load(of[at(k)]);
          store(to[at(k)], is_log ? g - std::exp(v) * sum : v * (g - sum));
        }
      }
  });
}
}  // namespace
template <typename T>
XDNN_EXPORT int softmax(Context* ctx, const T* x, T* y, const Shape& xshape, int64_t axis) {
  return softmax_line(ctx, "softmax", x, y, xshape, axis, false);
}
template <typename T>
XDNN_EXPORT int log_softmax(Context* ctx, const T* x, T* y, const Shape& xshape, int64_t axis) {
  return softmax_line(ctx, "log_softmax", x, y, xshape, axis, true);
}
template <typename T>
XDNN_EXPORT int softmax_grad(Context* ctx, const T* y, const T* dy, T* dx, const Shape& xshape,
                             int64_t axis, float input_scale) {
  XDNN_REQUIRE(input_scale == 1);
  return softmax_gradient(ctx, "softmax_grad", y, dy, dx, xshape, axis, false);
}
template <typename T>
XDNN_EXPORT int log_softmax_grad(Context* ctx, const T* y, const T* dy, T* dx, const Shape& xshape,
                                 int64_t axis) {
  return softmax_gradient(ctx, "log_softmax_grad", y, dy, dx, xshape, axis, true);
}
#define XDNN_SOFTMAX(T)                                                                        \
  template XDNN_EXPORT int softmax<T>(Context*, const T*, T*, const Shape&, int64_t);          \
  template XDNN_EXPORT int log_softmax<T>(Context*, const T*, T*, const Shape&, int64_t);      \
  template XDNN_EXPORT int softmax_grad<T>(Context*, const T*, const T*, T*, const Shape&,     \
                                           int64_t, float);                                    \
  template XDNN_EXPORT int log_softmax_grad<T>(Context*, const T*, const T*, T*, const Shape&, \
                                               int64_t);
XDNN_FLOATS(XDNN_SOFTMAX)

template <typename T>
XDNN_EXPORT int concat(Context* ctx, const std::vector<const T*>& x_list, T* y,
                       const std::vector<Shape>& xshape_list, int64_t axis) {
  XDNN_REQUIRE(!x_list.empty() && x_list.size() == xshape_list.size());
  Shape shape = xshape_list[0];
  XDNN_REQUIRE(axis >= 0 && axis < static_cast<int64_t>(shape.size()));
  shape[axis] = 0;
  std::vector<Range> ranges;
  for (size_t i = 0; i < x_list.size(); ++i) {
    Shape other = xshape_list[i];
    XDNN_REQUIRE(is_shape(other) && other.size() == shape.size());
    shape[axis] += other[axis];
    other[axis] = shape[axis];
    XDNN_REQUIRE(other == shape);
    ranges.push_back(range(x_list[i], numel(xshape_list[i])));
  }
  ranges.push_back(range(y, numel(shape)));
  return queue(ctx, "concat", ranges, [=, shapes = xshape_list](char* const* bytes) {
    Split whole;
    split(shape, axis, &whole);
    auto* to = reinterpret_cast<T*>(bytes[shapes.size()]);
    int64_t at = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const auto* from = reinterpret_cast<const T*>(bytes[i]);
      const int64_t run = shapes[i][axis] * whole.inner;
      for (int64_t o = 0; o < whole.outer; ++o)
        std::copy_n(from + o * run, run, to + o * whole.length * whole.inner + at);
      at += run;
    }
  });
}

namespace {
template <class T>
int triangle(Context* ctx, const char* name, const T* x, T* y, const Shape& xshape,
             int64_t diagonal, bool lower) {
  XDNN_REQUIRE(is_shape(xshape) && xshape.size() >= 2);
  const int64_t n = numel(xshape), columns = xshape.back(), rows = xshape[xshape.size() - 2];
  return queue(ctx, name, {range(x, n), range(y, n)}, [=](char* const* bytes) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t column = i % columns, row = i / columns % rows;
      const bool is_kept = lower ? column - row <= diagonal : column - row >= diagonal;
      reinterpret_cast<T*>(bytes[1])[i] = is_kept ? reinterpret_cast<const T*>(bytes[0])[i] : T{};
    }
  });
}
}  // namespace
template <typename T>
XDNN_EXPORT int tril(Context* ctx, const T* x, T* y, const Shape& xshape, int64_t diagonal) {
  return triangle(ctx, "tril", x, y, xshape, diagonal, true);
}
template <typename T>
XDNN_EXPORT int triu(Context* ctx, const T* x, T* y, const Shape& xshape, int64_t diagonal) {
  return triangle(ctx, "triu", x, y, xshape, diagonal, false);
}

// Positions outside of the axis are refused, which a real chip may not do.
template <typename T, typename TID>
XDNN_EXPORT int gather(Context* ctx, const T* x, const TID* index, T* y, const Shape& xshape,
                       int64_t index_len, int64_t axis) {
  Split s;
  XDNN_REQUIRE(split(xshape, axis, &s) && index_len > 0);
  return queue(
      ctx, "gather",
      {range(x, numel(xshape)), range(index, index_len), range(y, s.outer * index_len * s.inner)},
      [=](char* const* bytes) {
        const auto* at = reinterpret_cast<const TID*>(bytes[1]);
        for (int64_t o = 0; o < s.outer; ++o)
          for (int64_t k = 0; k < index_len; ++k) {
            if (at[k] < 0 || at[k] >= s.length) continue;
            std::copy_n(reinterpret_cast<const T*>(bytes[0]) + (o * s.length + at[k]) * s.inner,
                        s.inner, reinterpret_cast<T*>(bytes[2]) + (o * index_len + k) * s.inner);
          }
      });
}
template <typename T, typename TID>
XDNN_EXPORT int index_add(Context* ctx, const T* x, const T* src, T* y, const TID* index,
                          const Shape& xshape, int64_t idx_len, int64_t axis, T alpha) {
  Split s;
  XDNN_REQUIRE(split(xshape, axis, &s) && idx_len > 0);
  return queue(ctx, "index_add",
               {range(x, numel(xshape)), range(src, s.outer * idx_len * s.inner),
                range(y, numel(xshape)), range(index, idx_len)},
               [=](char* const* bytes) {
                 const auto* source = reinterpret_cast<const T*>(bytes[1]);
                 const auto* at = reinterpret_cast<const TID*>(bytes[3]);
                 auto* to = reinterpret_cast<T*>(bytes[2]);
                 if (bytes[0] != bytes[2])
                   std::copy_n(reinterpret_cast<const T*>(bytes[0]), numel(xshape), to);
                 for (int64_t o = 0; o < s.outer; ++o)
                   for (int64_t k = 0; k < idx_len; ++k)
                     for (int64_t i = 0; i < s.inner; ++i)
                       if (at[k] >= 0 && at[k] < s.length)
                         to[(o * s.length + at[k]) * s.inner + i] +=
                             alpha * source[(o * idx_len + k) * s.inner + i];
               });
}
// Rows of x that `index`, of shape [m, 1], names are replaced.
template <typename T, typename TID>
XDNN_EXPORT int index_put(Context* ctx, const T* x, const T* updates, const TID* index, T* y,
                          const Shape& xshape, const Shape& index_shape, bool accumulate) {
  XDNN_REQUIRE(is_shape(xshape) && is_shape(index_shape) && index_shape.size() == 2 &&
               index_shape[1] == 1);
  XDNN_REQUIRE(!accumulate);
  const int64_t n = numel(xshape), rows = index_shape[0], row = n / xshape[0];
  return queue(
      ctx, "index_put", {range(x, n), range(updates, rows * row), range(index, rows), range(y, n)},
      [=](char* const* bytes) {
        auto* to = reinterpret_cast<T*>(bytes[3]);
        if (bytes[0] != bytes[3]) std::copy_n(reinterpret_cast<const T*>(bytes[0]), n, to);
        for (int64_t k = 0; k < rows; ++k) {
          const int64_t at = reinterpret_cast<const TID*>(bytes[2])[k];
          if (at >= 0 && at < xshape[0])
            std::copy_n(reinterpret_cast<const T*>(bytes[1]) + k * row, row, to + at * row);
        }
      });
}
#define XDNN_INDEX_PUT(T)                                                                          \
  template XDNN_EXPORT int index_put<T, int64_t>(Context*, const T*, const T*, const int64_t*, T*, \
                                                 const Shape&, const Shape&, bool);
XDNN_NUMBERS(XDNN_INDEX_PUT)
XDNN_INDEX_PUT(bool)

#define XDNN_GATHER(T)                                                                \
  template XDNN_EXPORT int gather<T, int64_t>(Context*, const T*, const int64_t*, T*, \
                                              const Shape&, int64_t, int64_t);
XDNN_NUMBERS(XDNN_GATHER)
XDNN_GATHER(bool)
template XDNN_EXPORT int index_add<float, int64_t>(Context*, const float*, const float*, float*,
                                                   const int64_t*, const Shape&, int64_t, int64_t,
                                                   float);

template <typename T>
XDNN_EXPORT int flip(Context* ctx, const T* x, T* y, const Shape& xshape,
                     const std::vector<int64_t>& axis) {
  XDNN_REQUIRE(is_shape(xshape) && !axis.empty());
  std::vector<char> reversed(xshape.size());
  for (int64_t a : axis) {
    XDNN_REQUIRE(a >= 0 && a < static_cast<int64_t>(xshape.size()) && !reversed[a]);
    reversed[a] = 1;
  }
  const int64_t n = numel(xshape);
  return queue(ctx, "flip", {range(x, n), range(y, n)}, [=](char* const* bytes) {
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = i, to = 0, step = 1;
      for (size_t a = xshape.size(); a-- > 0; rest /= xshape[a]) {
        const int64_t at = rest % xshape[a];
        to += (reversed[a] ? xshape[a] - 1 - at : at) * step;
        step *= xshape[a];
      }
      reinterpret_cast<T*>(bytes[1])[to] = reinterpret_cast<const T*>(bytes[0])[i];
    }
  });
}

// Strides count elements.
template <typename T>
XDNN_EXPORT int strided_copy(Context* ctx, const T* x, T* y, const Shape& xshape,
                             const Shape& yshape, const Shape& xstrides, const Shape& ystrides) {
  XDNN_REQUIRE(is_shape(xshape) && xshape == yshape);
  XDNN_REQUIRE(xstrides.size() == xshape.size() && ystrides.size() == xshape.size());
  int64_t last_x = 0, last_y = 0;
  for (size_t axis = 0; axis < xshape.size(); ++axis) {
    XDNN_REQUIRE(xstrides[axis] >= 0 && ystrides[axis] >= 0);
    last_x += (xshape[axis] - 1) * xstrides[axis];
    last_y += (xshape[axis] - 1) * ystrides[axis];
  }
  return queue(ctx, "strided_copy", {range(x, last_x + 1), range(y, last_y + 1)},
               [=](char* const* bytes) {
                 for (int64_t i = 0; i < numel(xshape); ++i) {
                   int64_t rest = i, from = 0, to = 0;
                   for (size_t axis = xshape.size(); axis-- > 0; rest /= xshape[axis]) {
                     from += rest % xshape[axis] * xstrides[axis];
                     to += rest % xshape[axis] * ystrides[axis];
                   }
                   reinterpret_cast<T*>(bytes[1])[to] = reinterpret_cast<const T*>(bytes[0])[from];
                 }
               });
}
#define XDNN_STRIDED_COPY(T)                                                                   \
  template XDNN_EXPORT int strided_copy<T>(Context*, const T*, T*, const Shape&, const Shape&, \
                                           const Shape&, const Shape&);                        \
  template XDNN_EXPORT int flip<T>(Context*, const T*, T*, const Shape&,                       \
                                   const std::vector<int64_t>&);
XDNN_NUMBERS(XDNN_STRIDED_COPY)
XDNN_STRIDED_COPY(int8_t)
XDNN_STRIDED_COPY(int16_t)

#define XDNN_MOVES(T)                                                              \
  template XDNN_EXPORT int concat<T>(Context*, const std::vector<const T*>&, T*,   \
                                     const std::vector<Shape>&, int64_t);          \
  template XDNN_EXPORT int tril<T>(Context*, const T*, T*, const Shape&, int64_t); \
  template XDNN_EXPORT int triu<T>(Context*, const T*, T*, const Shape&, int64_t);
XDNN_NUMBERS(XDNN_MOVES)

}  // namespace baidu::xpu::api
