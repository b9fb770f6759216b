// SPDX-License-Identifier: Apache-2.0
// Functions of aclnn that fill, copy, join and pad tensors. Prototypes are those of the pages aclnn*.md of
// hicann/ops-math and ops-nn.

#include "checks.hpp"

namespace simulated::aclnn {
namespace {

ACLNN_EXPORT int aclnnInplaceFillScalarGetWorkspaceSize(aclTensor* self, const aclScalar* value,
                                                        uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self);
  if (!is_alive(value))
    return refuse("aclnnInplaceFillScalar", kNullPointer, "a scalar is nullptr or was destroyed");
  return plan(
      "aclnnInplaceFillScalar", {self},
      [number = value->number, integer = value->integer](std::vector<View>& views) {
        View& to = views[0];
        for (int64_t i = 0, n = to.count(); i < n; ++i) {
          if (is_float(to.of.dtype))
            to.store(to.offset(i, to.of.shape), number);
          else
            to.store(to.offset(i, to.of.shape), integer);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnInplaceFillScalar)

ACLNN_EXPORT int aclnnInplaceCopyGetWorkspaceSize(aclTensor* self, const aclTensor* source,
                                                  uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, source);
  REQUIRE(broadcasts(source->shape, self->shape), "the source does not broadcast");
  REQUIRE(!self->shape.empty() && !source->shape.empty(), "expected one axis or more");
  return plan(
      "aclnnInplaceCopy", {self, source},
      [](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[0].of.shape;
        for (int64_t i = 0, n = views[0].count(); i < n; ++i)
          copy_element(views[1], views[1].offset(i, shape), views[0], views[0].offset(i, shape));
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnInplaceCopy)

bool is_dense(const aclTensor* tensor) {
  int64_t step = 1;
  for (size_t axis = tensor->shape.size(); axis-- > 0; step *= tensor->shape[axis])
    if (tensor->shape[axis] > 1 && tensor->strides[axis] != step) return false;
  return true;
}

ACLNN_EXPORT int aclnnFlipGetWorkspaceSize(const aclTensor* self, const aclIntArray* dims,
                                           aclTensor* out, uint64_t* bytes,
                                           aclOpExecutor** executor) {
  NEEDS(self, out);
  if (!is_alive(dims)) return refuse(__func__, kNullPointer, "dims is nullptr or was destroyed");
  REQUIRE(self->dtype == out->dtype && self->shape == out->shape && !self->shape.empty(),
          "dtypes or shapes do not agree");
  REQUIRE(is_dense(out), "the result is not contiguous");
  std::vector<int64_t> axes = dims->values;
  for (int64_t& axis : axes)
    REQUIRE(resolve_axis(axis, self->shape.size()), "the axis is out of range");
  return plan(
      "aclnnFlip", {self, out},
      [=](std::vector<View>& views) {
        for (int64_t i = 0, n = views[1].count(); i < n; ++i) {
          Coordinates coordinates = coordinates_of(i, views[1].of.shape);
          const int64_t to = offset_of(views[1], coordinates);
          for (int64_t axis : axes) {
            const auto at = static_cast<size_t>(axis);
            coordinates[at] = views[0].of.shape[at] - 1 - coordinates[at];
          }
          copy_element(views[0], offset_of(views[0], coordinates), views[1], to);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnFlip)

// The numbers are those of ints; a recurrence in floats is not simulated.
ACLNN_EXPORT int aclnnArangeGetWorkspaceSize(const aclScalar* start, const aclScalar* end,
                                             const aclScalar* step, aclTensor* out, uint64_t* bytes,
                                             aclOpExecutor** executor) {
  NEEDS(out);
  if (!is_alive(start) || !is_alive(end) || !is_alive(step))
    return refuse("aclnnArange", kNullPointer, "a scalar is nullptr or was destroyed");
  REQUIRE(is_one_of(out->dtype, {kI32, kI64}) && start->dtype == kI64 && end->dtype == kI64 &&
              step->dtype == kI64,
          "only ints are simulated");
  const int64_t first = start->integer, by = step->integer, span = end->integer - first;
  REQUIRE(by != 0 && (by > 0 ? span >= 0 : span <= 0), "the step leads away from the end");
  REQUIRE(out->shape == std::vector<int64_t>{(span + by - (by > 0 ? 1 : -1)) / by},
          "the result has an unexpected length");
  return plan(
      "aclnnArange", {out},
      [=](std::vector<View>& views) {
        for (int64_t i = 0, n = views[0].count(); i < n; ++i)
          views[0].store(offset_of(views[0], {i}), first + i * by);
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnArange)

ACLNN_EXPORT int aclnnLinspaceGetWorkspaceSize(const aclScalar* start, const aclScalar* end,
                                               int64_t steps, aclTensor* out, uint64_t* bytes,
                                               aclOpExecutor** executor) {
  NEEDS(out);
  if (!is_alive(start) || !is_alive(end))
    return refuse("aclnnLinspace", kNullPointer, "a scalar is nullptr or was destroyed");
  REQUIRE(steps >= 2 && View(*out).count() == steps, "the result has an unexpected length");
  REQUIRE(is_float(out->dtype), "only floats are simulated");
  const double first = start->number, last = end->number;
  return plan(
      "aclnnLinspace", {out},
      [=](std::vector<View>& views) {
        const double gap = (last - first) / static_cast<double>(steps - 1);
        for (int64_t i = 0; i < steps; ++i)
          views[0].store(views[0].offset(i, views[0].of.shape),
                         i == steps - 1 ? last : first + static_cast<double>(i) * gap);
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnLinspace)

ACLNN_EXPORT int aclnnEyeGetWorkspaceSize(int64_t n, int64_t m, aclTensor* out, uint64_t* bytes,
                                          aclOpExecutor** executor) {
  NEEDS(out);
  REQUIRE(n >= 0 && m >= 0 && out->shape == (std::vector<int64_t>{n, m}),
          "the result has an unexpected shape");
  REQUIRE(out->dtype != kF64, "a dtype is not served");
  return plan(
      "aclnnEye", {out},
      [](std::vector<View>& views) {
        for (int64_t i = 0, count = views[0].count(); i < count; ++i) {
          const Coordinates coordinates = coordinates_of(i, views[0].of.shape);
          views[0].store(offset_of(views[0], coordinates),
                         int64_t{coordinates[0] == coordinates[1]});
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnEye)

ACLNN_EXPORT int aclnnCatGetWorkspaceSize(const aclTensorList* list, int64_t dim, aclTensor* out,
                                          uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(out);
  if (!is_alive(list) || list->tensors.empty())
    return refuse("aclnnCat", kNullPointer, "the list is nullptr, empty or was destroyed");
  std::vector<const aclTensor*> tensors = list->tensors;
  REQUIRE(!out->shape.empty() && resolve_axis(dim, out->shape.size()), "the axis is out of range");
  const auto along = static_cast<size_t>(dim);
  int64_t length = 0;
  for (const aclTensor* one : tensors) {
    NEEDS(one);
    REQUIRE(one->dtype == out->dtype, "several dtypes are not simulated");
    REQUIRE(one->shape.size() == out->shape.size(), "the shapes differ");
    for (size_t i = 0; i < out->shape.size(); ++i)
      REQUIRE(i == along || one->shape[i] == out->shape[i], "the shapes differ");
    length += one->shape[along];
  }
  REQUIRE(length == out->shape[along], "the result has an unexpected length");
  tensors.push_back(out);
  return plan(
      "aclnnCat", tensors,
      [=](std::vector<View>& views) {
        View& to = views.back();
        int64_t start = 0;
        for (size_t part = 0; part + 1 < views.size(); ++part) {
          const View& from = views[part];
          for (int64_t i = 0, n = from.count(); i < n; ++i) {
            Coordinates coordinates = coordinates_of(i, from.of.shape);
            const int64_t at = offset_of(from, coordinates);
            coordinates[along] += start;
            copy_element(from, at, to, offset_of(to, coordinates));
          }
          start += from.of.shape[along];
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnCat)

// `pad` holds two margins for each axis, those of the last axis first; negative ones cut.
ACLNN_EXPORT int aclnnConstantPadNdGetWorkspaceSize(const aclTensor* self, const aclIntArray* pad,
                                                    const aclScalar* value, aclTensor* out,
                                                    uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, out);
  if (!is_alive(pad) || !is_alive(value))
    return refuse("aclnnConstantPadNd", kNullPointer, "a parameter is nullptr or was destroyed");
  const size_t ndim = self->shape.size();
  REQUIRE(pad->values.size() % 2 == 0 && pad->values.size() <= 2 * ndim,
          "expected two margins for an axis");
  REQUIRE(out->dtype == self->dtype && out->shape.size() == ndim, "dtypes or shapes do not agree");
  REQUIRE(is_float(self->dtype) || value->dtype == kI64, "the value does not become the dtype");
  std::vector<int64_t> before(ndim, 0);
  for (size_t axis = 0; axis < ndim; ++axis) {
    const size_t pair = 2 * (ndim - 1 - axis);
    int64_t extent = self->shape[axis];
    if (pair < pad->values.size()) {
      before[axis] = pad->values[pair];
      extent += pad->values[pair] + pad->values[pair + 1];
    }
    REQUIRE(extent == out->shape[axis], "the result has an unexpected shape");
  }
  return plan(
      "aclnnConstantPadNd", {self, out},
      [=, number = value->number, integer = value->integer](std::vector<View>& views) {
        for (int64_t i = 0, n = views[1].count(); i < n; ++i) {
          Coordinates coordinates = coordinates_of(i, views[1].of.shape);
          const int64_t to = offset_of(views[1], coordinates);
          bool is_inside = true;
          for (size_t axis = 0; axis < ndim; ++axis) {
            coordinates[axis] -= before[axis];
            is_inside &= coordinates[axis] >= 0 && coordinates[axis] < views[0].of.shape[axis];
          }
          if (is_inside)
            copy_element(views[0], offset_of(views[0], coordinates), views[1], to);
          else if (is_float(views[1].of.dtype))
            views[1].store(to, number);
          else
            views[1].store(to, integer);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnConstantPadNd)

}  // namespace
}  // namespace simulated::aclnn
