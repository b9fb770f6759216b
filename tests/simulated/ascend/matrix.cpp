// SPDX-License-Identifier: Apache-2.0
// Conversion, choice, triangles and products of matrices of aclnn. Prototypes are those of the pages aclnn*.md of
// hicann/ops-math and ops-nn.
#include <cmath>

#include "checks.hpp"

namespace simulated::aclnn {
namespace {

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
          copy_element(views[0], from, views[1], to);
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
          copy_element(from, at, views[3], to);
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

ACLNN_EXPORT int aclnnAddmmGetWorkspaceSize(const aclTensor* self, const aclTensor* mat1,
                                            const aclTensor* mat2, const aclScalar* beta,
                                            const aclScalar* alpha, aclTensor* out,
                                            int8_t cube_math_type, uint64_t* bytes,
                                            aclOpExecutor** executor) {
  NEEDS(self, mat1, mat2, out);
  if (!is_alive(beta) || !is_alive(alpha))
    return refuse("aclnnAddmm", kNullPointer, "a scalar is nullptr or was destroyed");
  REQUIRE(cube_math_type >= 0 && cube_math_type <= 4, "cubeMathType is 0 to 4");
  REQUIRE(is_one_of(self->dtype, {kF32, kF16, kBf16}) && mat1->dtype == self->dtype &&
              mat2->dtype == self->dtype && out->dtype == self->dtype,
          "expected one dtype: float32, float16 or bfloat16");
  REQUIRE((self->shape.size() == 1 || self->shape.size() == 2) && mat1->shape.size() == 2 &&
              mat2->shape.size() == 2,
          "expected matrices");
  REQUIRE(mat1->shape[1] == mat2->shape[0] &&
              out->shape == (std::vector<int64_t>{mat1->shape[0], mat2->shape[1]}) &&
              broadcasts(self->shape, out->shape),
          "shapes do not agree");
  const double a = alpha->number, b = beta->number;
  return plan(
      "aclnnAddmm", {self, mat1, mat2, out},
      [=](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[3].of.shape;
        for (int64_t i = 0, n = views[3].count(); i < n; ++i) {
          const int64_t row = i / shape[1], column = i % shape[1];
          double sum = 0;
          for (int64_t k = 0; k < views[1].of.shape[1]; ++k)
            sum += views[1].number(offset_of(views[1], {row, k})) *
                   views[2].number(offset_of(views[2], {k, column}));
          views[3].store(offset_of(views[3], {row, column}),
                         b * views[0].number(views[0].offset(i, shape)) + a * sum);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnAddmm)

// One matrix of coefficients; batches are not simulated.
ACLNN_EXPORT int aclnnTriangularSolveGetWorkspaceSize(const aclTensor* self, const aclTensor* a,
                                                      bool upper, bool transpose,
                                                      bool unitriangular, aclTensor* x,
                                                      aclTensor* m, uint64_t* bytes,
                                                      aclOpExecutor** executor) {
  NEEDS(self, a, x, m);
  REQUIRE(is_one_of(self->dtype, {kF32, kF64}) && (!unitriangular || self->dtype == kF32) &&
              a->dtype == self->dtype && x->dtype == self->dtype && m->dtype == self->dtype,
          "expected one dtype: float32, or float64 with a diagonal");
  REQUIRE(a->shape.size() == 2 && self->shape.size() == 2 && !transpose,
          "batches and the transposed system are not simulated");
  REQUIRE(a->shape[0] == a->shape[1] && a->shape[0] == self->shape[0] && x->shape == self->shape &&
              m->shape == a->shape,
          "shapes do not agree");
  return plan(
      "aclnnTriangularSolve", {self, a, x, m},
      [=](std::vector<View>& views) {
        const int64_t n = views[1].of.shape[0], columns = views[0].of.shape[1];
        for (int64_t c = 0; c < columns; ++c) {
          std::vector<double> solved(static_cast<size_t>(n));
          for (int64_t step = 0; step < n; ++step) {
            const int64_t i = upper ? n - 1 - step : step;
            double rest = views[0].number(offset_of(views[0], {i, c}));
            for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); ++k)
              rest -= views[1].number(offset_of(views[1], {i, k})) * solved[static_cast<size_t>(k)];
            if (!unitriangular) rest /= views[1].number(offset_of(views[1], {i, i}));
            solved[static_cast<size_t>(i)] = rest;
            views[2].store(offset_of(views[2], {i, c}), rest);
          }
        }
        for (int64_t i = 0; i < n * n; ++i) {
          const int64_t row = i / n, column = i % n;
          const bool kept = upper ? column >= row : column <= row;
          views[3].store(offset_of(views[3], {row, column}),
                         kept ? views[1].number(offset_of(views[1], {row, column})) : 0.0);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnTriangularSolve)

}  // namespace
}  // namespace simulated::aclnn
