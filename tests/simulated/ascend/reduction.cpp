// SPDX-License-Identifier: Apache-2.0
// Reductions of aclnn, and what runs along one axis. Prototypes are those of the pages aclnn*.md of hicann/ops-math
// and ops-nn.
#include <cmath>
#include <functional>
#include <numeric>
#include <type_traits>

#include "checks.hpp"

namespace simulated::aclnn {
namespace {

// Which axes an array of them means; empty if one is out of range or given twice.
std::vector<bool> reduced_axes(const aclIntArray* axes, size_t ndim) {
  std::vector<bool> is_reduced(ndim, false);
  for (int64_t axis : axes->values) {
    if (axis < 0) axis += static_cast<int64_t>(ndim);
    if (axis < 0 || axis >= static_cast<int64_t>(ndim) || is_reduced[static_cast<size_t>(axis)])
      return {};
    is_reduced[static_cast<size_t>(axis)] = true;
  }
  return is_reduced;
}

using Values = std::vector<long double>;  // which holds every int64_t
using Integers = std::vector<uint64_t>;   // for folds that wrap around

// fold(values of one result) -> result
template <class Fold>
int reduce_axes(const char* name, const aclTensor* self, const std::vector<bool>& is_reduced,
                bool keep, aclTensor* out, Fold fold, uint64_t* bytes, aclOpExecutor** executor) {
  std::vector<int64_t> expected;
  for (size_t i = 0; i < self->shape.size(); ++i)
    if (!is_reduced[i])
      expected.push_back(self->shape[i]);
    else if (keep)
      expected.push_back(1);
  if (expected != out->shape) return refuse(name, kInvalid, "the result has an unexpected shape");
  return plan(
      name, {self, out},
      [=](std::vector<View>& views) {
        View& from = views[0];
        View& to = views[1];
        const std::vector<int64_t>& shape = from.of.shape;
        std::vector<Values> parts(static_cast<size_t>(to.count()));
        std::vector<Integers> integers(parts.size());
        for (int64_t i = 0, n = from.count(); i < n; ++i) {
          int64_t rest = i, at = 0, step = 1;
          for (size_t axis = shape.size(); axis-- > 0;) {
            const int64_t index = rest % shape[axis];
            rest /= shape[axis];
            if (is_reduced[axis]) continue;
            at += index * step;
            step *= shape[axis];
          }
          const int64_t element = from.offset(i, shape);
          const auto part = static_cast<size_t>(at);
          if (is_float(from.of.dtype)) {
            parts[part].push_back(from.number(element));
          } else {
            parts[part].push_back(static_cast<long double>(from.integer(element)));
            integers[part].push_back(static_cast<uint64_t>(from.integer(element)));
          }
        }
        for (size_t i = 0; i < parts.size(); ++i) {
          const int64_t at = to.offset(static_cast<int64_t>(i), to.of.shape);
          if constexpr (std::is_invocable_v<Fold, const Integers&>)
            if (!is_float(to.of.dtype)) {
              to.store(at, static_cast<int64_t>(fold(integers[i])));
              continue;
            }
          const auto result = fold(parts[i]);
          if (is_float(to.of.dtype))
            to.store(at, static_cast<double>(result));
          else
            to.store(at, static_cast<int64_t>(result));
        }
      },
      bytes, executor);
}

template <class Fold>
int reduce(const char* name, const aclTensor* self, const aclIntArray* axes, bool keep,
           aclTensor* out, Fold fold, uint64_t* bytes, aclOpExecutor** executor) {
  if (!is_alive(self) || !is_alive(out) || !is_alive(axes))
    return refuse(name, kNullPointer, "a parameter is nullptr or was destroyed");
  const std::vector<bool> is_reduced = reduced_axes(axes, self->shape.size());
  if (is_reduced.size() != self->shape.size())
    return refuse(name, kInvalid, "an axis is out of range or given twice");
  return reduce_axes(name, self, is_reduced, keep, out, fold, bytes, executor);
}

template <class Fold>
int reduce_one(const char* name, const aclTensor* self, int64_t axis, bool keep, aclTensor* out,
               Fold fold, uint64_t* bytes, aclOpExecutor** executor) {
  std::vector<bool> is_reduced(self->shape.size(), false);
  if (!is_reduced.empty()) is_reduced[static_cast<size_t>(axis)] = true;
  return reduce_axes(name, self, is_reduced, keep, out, fold, bytes, executor);
}

long double total(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0L);
}
Values without_nan(Values values) {
  std::erase_if(values, [](long double x) { return x != x; });
  return values;
}
long double maximum_or_minimum(const Values& values, bool largest) {
  long double best = values.at(0);
  for (long double value : values)
    if (value != value || (best == best && (largest ? value > best : value < best))) best = value;
  return best;
}
double log_sum_exp(const Values& values) {
  const double most = maximum_or_minimum(values, true);
  if (!std::isfinite(most)) return most;
  double sum = 0;
  for (double value : values) sum += std::exp(value - most);
  return most + std::log(sum);
}

#define REDUCE(NAME, EXPRESSION)                                                                   \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, const aclIntArray* dim,           \
                                          bool keep, aclTensor* out, uint64_t* bytes,              \
                                          aclOpExecutor** executor) {                              \
    return reduce(                                                                                 \
        #NAME, self, dim, keep, out, [](const Values& v) { return EXPRESSION; }, bytes, executor); \
  }                                                                                                \
  ACLNN_EXECUTE(NAME)
REDUCE(aclnnAmax, maximum_or_minimum(v, true))
REDUCE(aclnnAmin, maximum_or_minimum(v, false))
REDUCE(aclnnAll, std::all_of(v.begin(), v.end(), [](double x) { return x != 0; }))
REDUCE(aclnnAny, std::any_of(v.begin(), v.end(), [](double x) { return x != 0; }))
REDUCE(aclnnLogSumExp, log_sum_exp(v))

struct Sum {
  long double operator()(const Values& values) const { return total(values); }
  uint64_t operator()(const Integers& values) const {
    return std::accumulate(values.begin(), values.end(), uint64_t{0});
  }
};
struct NanSum : Sum {
  using Sum::operator();
  long double operator()(const Values& values) const { return total(without_nan(values)); }
};
struct Mean {
  long double operator()(const Values& values) const {
    return total(values) / static_cast<long double>(values.size());
  }
};

#define REDUCE_TO(NAME, FOLD)                                                                    \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, const aclIntArray* dim,         \
                                          bool keep, int dtype, aclTensor* out, uint64_t* bytes, \
                                          aclOpExecutor** executor) {                            \
    NEEDS(out);                                                                                  \
    if (dtype != out->dtype) return refuse(#NAME, kInvalid, "dtype is not that of the result");  \
    return reduce(#NAME, self, dim, keep, out, FOLD{}, bytes, executor);                         \
  }                                                                                              \
  ACLNN_EXECUTE(NAME)
REDUCE_TO(aclnnReduceSum, Sum)
REDUCE_TO(aclnnMean, Mean)
REDUCE_TO(aclnnReduceNansum, NanSum)

double variance(const Values& values, int64_t correction) {
  const auto n = static_cast<double>(values.size());
  const double mean = total(values) / n;
  double sum = 0;
  for (double x : values) sum += (x - mean) * (x - mean);
  return sum / std::fmax(0, n - static_cast<double>(correction));
}

#define SPREAD(NAME, EXPRESSION)                                                         \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, const aclIntArray* dim, \
                                          int64_t correction, bool keep, aclTensor* out, \
                                          uint64_t* bytes, aclOpExecutor** executor) {   \
    NEEDS(self, out);                                                                    \
    REQUIRE(is_one_of(self->dtype, {kF32, kF16, kBf16}) && out->dtype == self->dtype,    \
            "expected float32, float16 or bfloat16");                                    \
    return reduce(                                                                       \
        #NAME, self, dim, keep, out, [=](const Values& v) { return EXPRESSION; }, bytes, \
        executor);                                                                       \
  }                                                                                      \
  ACLNN_EXECUTE(NAME)
SPREAD(aclnnVarCorrection, variance(v, correction))
SPREAD(aclnnStd, std::sqrt(variance(v, correction)))

ACLNN_EXPORT int aclnnNormGetWorkspaceSize(const aclTensor* self, const aclScalar* p,
                                           const aclIntArray* dim, bool keep, aclTensor* out,
                                           uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, out);
  REQUIRE(is_alive(p) && p->dtype == kF32, "p is a float32");
  REQUIRE(is_one_of(self->dtype, {kF32, kF16, kBf16}), "expected float32, float16 or bfloat16");
  const double power = p->number;
  REQUIRE(std::isfinite(power) && power > 0, "this p is not simulated");
  return reduce(
      "aclnnNorm", self, dim, keep, out,
      [=](const Values& v) {
        double sum = 0;
        for (double x : v) sum += std::pow(std::fabs(x), power);
        return std::pow(sum, 1 / power);
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnNorm)

long double product(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 1.0, std::multiplies<>());
}

ACLNN_EXPORT int aclnnProdDimGetWorkspaceSize(const aclTensor* self, int64_t dim, bool keep,
                                              int dtype, aclTensor* out, uint64_t* bytes,
                                              aclOpExecutor** executor) {
  NEEDS(self, out);
  REQUIRE(dtype == out->dtype, "dtype is not that of the result");
  REQUIRE(resolve_axis(dim, self->shape.size()), "the axis is out of range");
  return reduce_one("aclnnProdDim", self, dim, keep, out, product, bytes, executor);
}
ACLNN_EXECUTE(aclnnProdDim)

ACLNN_EXPORT int aclnnProdGetWorkspaceSize(const aclTensor* self, int dtype, aclTensor* out,
                                           uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, out);
  REQUIRE(dtype == out->dtype, "dtype is not that of the result");
  REQUIRE(out->shape == std::vector<int64_t>{1}, "the result has the shape [1]");
  return plan(
      "aclnnProd", {self, out},
      [](std::vector<View>& views) {
        Values values;
        for (int64_t i = 0, n = views[0].count(); i < n; ++i)
          values.push_back(views[0].number(views[0].offset(i, views[0].of.shape)));
        views[1].store(views[1].of.offset, static_cast<double>(product(values)));
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnProd)

double position_of_extreme(const Values& values, bool largest) {
  const double best = maximum_or_minimum(values, largest);
  const auto is_best = [&](double x) { return x == best || (x != x && best != best); };
  return static_cast<double>(std::find_if(values.begin(), values.end(), is_best) - values.begin());
}

#define ARG_EXTREME(NAME, LARGEST)                                                                 \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, int64_t dim, bool keep,           \
                                          aclTensor* out, uint64_t* bytes,                         \
                                          aclOpExecutor** executor) {                              \
    NEEDS(self, out);                                                                              \
    REQUIRE(self->dtype != kBool && is_one_of(out->dtype, {kI32, kI64}), "a dtype is not served"); \
    REQUIRE(resolve_axis(dim, self->shape.size()), "the axis is out of range");                    \
    return reduce_one(                                                                             \
        #NAME, self, dim, keep, out,                                                               \
        [](const Values& v) { return position_of_extreme(v, LARGEST); }, bytes, executor);         \
  }                                                                                                \
  ACLNN_EXECUTE(NAME)
ARG_EXTREME(aclnnArgMax, true)
ARG_EXTREME(aclnnArgMin, false)

// line(values along the axis) changes them.
template <class Line>
int along_axis(const char* name, const aclTensor* self, int64_t axis, aclTensor* out, Line line,
               uint64_t* bytes, aclOpExecutor** executor) {
  if (!is_alive(self) || !is_alive(out))
    return refuse(name, kNullPointer, "a tensor is nullptr or was destroyed");
  if (!resolve_axis(axis, self->shape.size()))
    return refuse(name, kInvalid, "the axis is out of range");
  if (self->shape != out->shape)
    return refuse(name, kInvalid, "the result has an unexpected shape");
  return plan(
      name, {self, out},
      [=](std::vector<View>& views) {
        View& from = views[0];
        View& to = views[1];
        const std::vector<int64_t>& shape = from.of.shape;
        const int64_t n = from.count(),
                      extent = shape.empty() ? 1 : shape[static_cast<size_t>(axis)];
        int64_t step = 1;
        for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) step *= shape[i];
        for (int64_t i = 0; i < n; ++i) {
          if (i / step % extent != 0) continue;
          Values values;
          for (int64_t k = 0; k < extent; ++k)
            values.push_back(from.number(from.offset(i + k * step, shape)));
          line(values);
          for (int64_t k = 0; k < extent; ++k)
            to.store(to.offset(i + k * step, shape),
                     static_cast<double>(values[static_cast<size_t>(k)]));
        }
      },
      bytes, executor);
}

#define ALONG(NAME, ...)                                                                      \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, int64_t dim, aclTensor* out, \
                                          uint64_t* bytes, aclOpExecutor** executor) {        \
    return along_axis(                                                                        \
        #NAME, self, dim, out, [](Values& v) { __VA_ARGS__ }, bytes, executor);               \
  }                                                                                           \
  ACLNN_EXECUTE(NAME)
ALONG(aclnnSoftmax, {
  const double most = maximum_or_minimum(v, true);
  long double sum = 0;
  for (auto& x : v) sum += x = std::exp(x - most);
  for (auto& x : v) x /= sum;
})
ALONG(aclnnLogSoftmax, {
  const double most = maximum_or_minimum(v, true);
  double sum = 0;
  for (double x : v) sum += std::exp(x - most);
  for (auto& x : v) x = x - most - std::log(sum);
})
ACLNN_EXPORT int aclnnCumsumGetWorkspaceSize(const aclTensor* self, int64_t dim, int dtype,
                                             aclTensor* out, uint64_t* bytes,
                                             aclOpExecutor** executor) {
  NEEDS(self, out);
  if (dtype != out->dtype)
    return refuse("aclnnCumsum", kInvalid, "dtype is not that of the result");
  return along_axis(
      "aclnnCumsum", self, dim, out,
      [](Values& v) { std::partial_sum(v.begin(), v.end(), v.begin()); }, bytes, executor);
}
ACLNN_EXECUTE(aclnnCumsum)

ACLNN_EXPORT int aclnnCumprodGetWorkspaceSize(const aclTensor* self, const aclScalar* dim,
                                              int dtype, aclTensor* out, uint64_t* bytes,
                                              aclOpExecutor** executor) {
  NEEDS(self, out);
  REQUIRE(is_alive(dim) && dim->dtype == kI32, "dim is an int32");
  REQUIRE(dtype == out->dtype, "dtype is not that of the result");
  return along_axis(
      "aclnnCumprod", self, dim->integer, out,
      [](Values& v) { std::partial_sum(v.begin(), v.end(), v.begin(), std::multiplies<>()); },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnCumprod)

// f(gradient, output, sum of gradients, sum of gradients times outputs), the sums along the axis.
template <class F>
int backward_along_axis(const char* name, const aclTensor* grad, const aclTensor* output,
                        int64_t axis, aclTensor* out, F f, uint64_t* bytes,
                        aclOpExecutor** executor) {
  NEEDS(grad, output, out);
  REQUIRE(grad->shape == output->shape && grad->shape == out->shape, "the shapes differ");
  REQUIRE(is_one_of(grad->dtype, {kF32, kF16, kBf16}) && grad->dtype == output->dtype,
          "expected one dtype: float32, float16 or bfloat16");
  REQUIRE(resolve_axis(axis, grad->shape.size()), "the axis is out of range");
  return plan(
      name, {grad, output, out},
      [=](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[0].of.shape;
        const int64_t extent = shape.empty() ? 1 : shape[static_cast<size_t>(axis)];
        for (int64_t i = 0, n = views[0].count(); i < n; ++i) {
          Coordinates coordinates = coordinates_of(i, shape);
          double sum_g = 0, sum_gy = 0;
          for (int64_t k = 0; k < extent; ++k) {
            if (!coordinates.empty()) coordinates[static_cast<size_t>(axis)] = k;
            const double g = views[0].number(offset_of(views[0], coordinates));
            sum_g += g, sum_gy += g * views[1].number(offset_of(views[1], coordinates));
          }
          const int64_t at = views[0].offset(i, shape);
          views[2].store(
              views[2].offset(i, shape),
              f(views[0].number(at), views[1].number(views[1].offset(i, shape)), sum_g, sum_gy));
        }
      },
      bytes, executor);
}
ACLNN_EXPORT int aclnnSoftmaxBackwardGetWorkspaceSize(const aclTensor* grad,
                                                      const aclTensor* output, int64_t dim,
                                                      aclTensor* out, uint64_t* bytes,
                                                      aclOpExecutor** executor) {
  return backward_along_axis(
      "aclnnSoftmaxBackward", grad, output, dim, out,
      [](double g, double y, double, double sum_gy) { return g * y - sum_gy * y; }, bytes,
      executor);
}
ACLNN_EXECUTE(aclnnSoftmaxBackward)
ACLNN_EXPORT int aclnnLogSoftmaxBackwardGetWorkspaceSize(const aclTensor* grad,
                                                         const aclTensor* output, int64_t dim,
                                                         aclTensor* out, uint64_t* bytes,
                                                         aclOpExecutor** executor) {
  return backward_along_axis(
      "aclnnLogSoftmaxBackward", grad, output, dim, out,
      [](double g, double y, double sum_g, double) { return g - sum_g * std::exp(y); }, bytes,
      executor);
}
ACLNN_EXECUTE(aclnnLogSoftmaxBackward)

}  // namespace
}  // namespace simulated::aclnn
