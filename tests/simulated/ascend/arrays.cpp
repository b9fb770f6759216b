// SPDX-License-Identifier: Apache-2.0
// Functions of aclnn that see more than one element at once, or several dtypes: reductions, softmax, products of
// matrices, triangles, choice, conversion. Prototypes are those of the pages aclnn*.md of hicann/ops-math and ops-nn.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tensor.hpp"

namespace simulated::aclnn {
namespace {

bool all_alive(std::initializer_list<const aclTensor*> tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const aclTensor* one) { return is_alive(one); });
}

#define NEEDS(...)               \
  if (!all_alive({__VA_ARGS__})) \
  return refuse(__func__, kNullPointer, "a tensor is nullptr or was destroyed")

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

// fold(values of one result) -> result
template <class Fold>
int reduce(const char* name, const aclTensor* self, const aclIntArray* axes, bool keep,
           aclTensor* out, Fold fold, uint64_t* bytes, aclOpExecutor** executor) {
  if (!is_alive(self) || !is_alive(out) || !is_alive(axes))
    return refuse(name, kNullPointer, "a parameter is nullptr or was destroyed");
  const std::vector<bool> is_reduced = reduced_axes(axes, self->shape.size());
  if (is_reduced.size() != self->shape.size())
    return refuse(name, kInvalid, "an axis is out of range or given twice");
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
        std::vector<std::vector<double>> parts(static_cast<size_t>(to.count()));
        for (int64_t i = 0, n = from.count(); i < n; ++i) {
          int64_t rest = i, at = 0, step = 1;
          for (size_t axis = shape.size(); axis-- > 0;) {
            const int64_t index = rest % shape[axis];
            rest /= shape[axis];
            if (is_reduced[axis]) continue;
            at += index * step;
            step *= shape[axis];
          }
          parts[static_cast<size_t>(at)].push_back(from.number(from.offset(i, shape)));
        }
        for (size_t i = 0; i < parts.size(); ++i)
          to.store(to.offset(static_cast<int64_t>(i), to.of.shape),
                   static_cast<double>(fold(parts[i])));
      },
      bytes, executor);
}

using Values = std::vector<double>;
double total(const Values& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double extreme(const Values& values, bool largest) {
  double best = values.at(0);
  for (double value : values)
    if (value != value || (best == best && (largest ? value > best : value < best))) best = value;
  return best;
}
double log_sum_exp(const Values& values) {
  const double most = extreme(values, true);
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
REDUCE(aclnnAmax, extreme(v, true))
REDUCE(aclnnAmin, extreme(v, false))
REDUCE(aclnnAll, std::all_of(v.begin(), v.end(), [](double x) { return x != 0; }))
REDUCE(aclnnAny, std::any_of(v.begin(), v.end(), [](double x) { return x != 0; }))
REDUCE(aclnnLogSumExp, log_sum_exp(v))

#define REDUCE_TO(NAME, EXPRESSION)                                                                \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, const aclIntArray* dim,           \
                                          bool keep, int dtype, aclTensor* out, uint64_t* bytes,   \
                                          aclOpExecutor** executor) {                              \
    NEEDS(out);                                                                                    \
    if (dtype != out->dtype) return refuse(#NAME, kInvalid, "dtype is not that of the result");    \
    return reduce(                                                                                 \
        #NAME, self, dim, keep, out, [](const Values& v) { return EXPRESSION; }, bytes, executor); \
  }                                                                                                \
  ACLNN_EXECUTE(NAME)
REDUCE_TO(aclnnReduceSum, total(v))
REDUCE_TO(aclnnMean, total(v) / static_cast<double>(v.size()))

// line(values along the axis) changes them.
template <class Line>
int along_axis(const char* name, const aclTensor* self, int64_t axis, aclTensor* out, Line line,
               uint64_t* bytes, aclOpExecutor** executor) {
  if (!is_alive(self) || !is_alive(out))
    return refuse(name, kNullPointer, "a tensor is nullptr or was destroyed");
  const auto ndim = static_cast<int64_t>(self->shape.size());
  if (axis < 0) axis += std::max<int64_t>(ndim, 1);
  if (axis < 0 || axis >= std::max<int64_t>(ndim, 1))
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
            to.store(to.offset(i + k * step, shape), values[static_cast<size_t>(k)]);
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
  const double most = extreme(v, true);
  double sum = 0;
  for (double& x : v) sum += x = std::exp(x - most);
  for (double& x : v) x /= sum;
})
ALONG(aclnnLogSoftmax, {
  const double most = extreme(v, true);
  double sum = 0;
  for (double x : v) sum += std::exp(x - most);
  for (double& x : v) x = x - most - std::log(sum);
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

ACLNN_EXPORT int aclnnCastGetWorkspaceSize(const aclTensor* self, const int dtype, aclTensor* out,
                                           uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, out);
  if (dtype != out->dtype || self->shape != out->shape)
    return refuse("aclnnCast", kInvalid, "dtype or shape is not that of the result");
  return plan(
      "aclnnCast", {self, out},
      [](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[1].of.shape;
        for (int64_t i = 0, n = views[1].count(); i < n; ++i) {
          const int64_t from = views[0].offset(i, shape), to = views[1].offset(i, shape);
          if (is_float(views[0].of.dtype))
            views[1].store(to, views[0].number(from));
          else
            views[1].store(to, views[0].integer(from));
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnCast)

ACLNN_EXPORT int aclnnSWhereGetWorkspaceSize(const aclTensor* condition, const aclTensor* self,
                                             const aclTensor* other, aclTensor* out,
                                             uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(condition, self, other, out);
  if (condition->dtype != kBool || self->dtype != other->dtype || out->dtype != self->dtype)
    return refuse("aclnnSWhere", kInvalid, "expected a bool and one dtype");
  for (const aclTensor* one : {condition, self, other})
    if (!broadcasts(one->shape, out->shape))
      return refuse("aclnnSWhere", kInvalid, "shapes do not broadcast");
  return plan(
      "aclnnSWhere", {condition, self, other, out},
      [](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[3].of.shape;
        for (int64_t i = 0, n = views[3].count(); i < n; ++i) {
          const View& from = views[0].integer(views[0].offset(i, shape)) ? views[1] : views[2];
          const int64_t at = from.offset(i, shape), to = views[3].offset(i, shape);
          if (is_float(from.of.dtype))
            views[3].store(to, from.number(at));
          else
            views[3].store(to, from.integer(at));
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnSWhere)

int triangle(const char* name, const aclTensor* self, int64_t diagonal, aclTensor* out, bool upper,
             uint64_t* bytes, aclOpExecutor** executor) {
  if (!is_alive(self) || !is_alive(out))
    return refuse(name, kNullPointer, "a tensor is nullptr or was destroyed");
  if (self->shape.size() < 2 || self->shape != out->shape || self->dtype != out->dtype)
    return refuse(name, kInvalid, "expected matrices of one shape and dtype");
  return plan(
      name, {self, out},
      [=](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[1].of.shape;
        const int64_t columns = shape.back(), rows = shape[shape.size() - 2];
        for (int64_t i = 0, n = views[1].count(); i < n; ++i) {
          const int64_t distance = i % columns - i / columns % rows;
          const bool kept = upper ? distance >= diagonal : distance <= diagonal;
          const int64_t from = views[0].offset(i, shape), to = views[1].offset(i, shape);
          if (is_float(views[0].of.dtype))
            views[1].store(to, kept ? views[0].number(from) : 0.0);
          else
            views[1].store(to, kept ? views[0].integer(from) : int64_t{0});
        }
      },
      bytes, executor);
}
ACLNN_EXPORT int aclnnTriuGetWorkspaceSize(const aclTensor* self, int64_t diagonal, aclTensor* out,
                                           uint64_t* bytes, aclOpExecutor** executor) {
  return triangle("aclnnTriu", self, diagonal, out, true, bytes, executor);
}
ACLNN_EXECUTE(aclnnTriu)
ACLNN_EXPORT int aclnnTrilGetWorkspaceSize(const aclTensor* self, int64_t diagonal, aclTensor* out,
                                           uint64_t* bytes, aclOpExecutor** executor) {
  return triangle("aclnnTril", self, diagonal, out, false, bytes, executor);
}
ACLNN_EXECUTE(aclnnTril)

// Shapes follow torch.matmul: a vector becomes a row or a column, leading axes broadcast.
ACLNN_EXPORT int aclnnMatmulGetWorkspaceSize(const aclTensor* self, const aclTensor* other,
                                             aclTensor* out, int8_t cube_math_type, uint64_t* bytes,
                                             aclOpExecutor** executor) {
  NEEDS(self, other, out);
  if (cube_math_type < 0 || cube_math_type > 3)
    return refuse("aclnnMatmul", kInvalid, "cubeMathType is 0 to 3");
  if (self->dtype != other->dtype || self->dtype != out->dtype ||
      (self->dtype != kF32 && self->dtype != kF16 && self->dtype != kBf16))
    return refuse("aclnnMatmul", kInvalid, "expected one dtype: float32, float16 or bfloat16");
  if (self->shape.empty() || other->shape.empty())
    return refuse("aclnnMatmul", kInvalid, "expected one axis or more");
  aclTensor x = *self, y = *other, z = *out;
  if (x.shape.size() == 1) {
    x.shape.insert(x.shape.begin(), 1), x.strides.insert(x.strides.begin(), 0);
    z.shape.insert(z.shape.end() - (other->shape.size() > 1), 1),
        z.strides.insert(z.strides.end() - (other->shape.size() > 1), 0);
  }
  if (other->shape.size() == 1) {
    y.shape.push_back(1), y.strides.push_back(0);
    z.shape.push_back(1), z.strides.push_back(0);
  }
  const size_t ndim = z.shape.size();
  const int64_t rows = x.shape[x.shape.size() - 2], inner = x.shape.back(),
                columns = y.shape.back();
  if (y.shape[y.shape.size() - 2] != inner || ndim < 2 || z.shape[ndim - 2] != rows ||
      z.shape[ndim - 1] != columns)
    return refuse("aclnnMatmul", kInvalid, "shapes do not agree");
  return plan(
      "aclnnMatmul", {self, other, out},
      [=](std::vector<View>& views) {
        const std::vector<int64_t> batch(z.shape.begin(), z.shape.end() - 2);
        int64_t batches = 1;
        for (int64_t extent : batch) batches *= extent;
        const auto start = [&](const aclTensor& tensor, int64_t i) {
          View lead(tensor);
          lead.of.shape.resize(tensor.shape.size() - 2);
          lead.of.strides.resize(tensor.shape.size() - 2);
          return lead.offset(i, batch);
        };
        const auto stride = [](const aclTensor& tensor, size_t from_end) {
          return tensor.strides[tensor.strides.size() - from_end];
        };
        for (int64_t b = 0; b < batches; ++b) {
          const int64_t xb = start(x, b), yb = start(y, b), zb = start(z, b);
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j) {
              double sum = 0;
              for (int64_t k = 0; k < inner; ++k)
                sum += views[0].number(xb + i * stride(x, 2) + k * stride(x, 1)) *
                       views[1].number(yb + k * stride(y, 2) + j * stride(y, 1));
              views[2].store(zb + i * stride(z, 2) + j * stride(z, 1), sum);
            }
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnMatmul)

}  // namespace
}  // namespace simulated::aclnn
