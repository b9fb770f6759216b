// SPDX-License-Identifier: Apache-2.0
// Functions of aclnn that take elements by positions or in order. Prototypes are those of the pages aclnn*.md of
// hicann/ops-math and ops-nn.
#include <cmath>
#include <numeric>

#include "checks.hpp"

namespace simulated::aclnn {
namespace {

ACLNN_EXPORT int aclnnGatherGetWorkspaceSize(const aclTensor* self, const int64_t dim,
                                             const aclTensor* index, aclTensor* out,
                                             uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, index, out);
  int64_t axis = dim;
  REQUIRE(resolve_axis(axis, self->shape.size()), "the axis is out of range");
  REQUIRE(is_one_of(index->dtype, {kI32, kI64}), "positions are int32 or int64");
  REQUIRE(out->dtype == self->dtype && out->shape == index->shape &&
              index->shape.size() == self->shape.size(),
          "dtypes or shapes do not agree");
  for (size_t i = 0; i < self->shape.size(); ++i)
    REQUIRE(static_cast<int64_t>(i) == axis || index->shape[i] <= self->shape[i],
            "the positions are longer than the tensor");
  return plan(
      "aclnnGather", {self, index, out},
      [=](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[2].of.shape;
        const int64_t extent =
            views[0].of.shape.empty() ? 1 : views[0].of.shape[static_cast<size_t>(axis)];
        for (int64_t i = 0, n = views[2].count(); i < n; ++i) {
          Coordinates coordinates = coordinates_of(i, shape);
          int64_t position = views[1].integer(offset_of(views[1], coordinates));
          if (position < 0) position += extent;
          if (position < 0 || position >= extent) continue;  // undefined
          const int64_t to = offset_of(views[2], coordinates);
          if (!coordinates.empty()) coordinates[static_cast<size_t>(axis)] = position;
          copy_element(views[0], offset_of(views[0], coordinates), views[2], to);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnGather)

ACLNN_EXPORT int aclnnIndexSelectGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                                  const aclTensor* index, aclTensor* out,
                                                  uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, index, out);
  REQUIRE(!self->shape.empty() && resolve_axis(dim, self->shape.size()),
          "the axis is out of range");
  REQUIRE(index->shape.size() <= 1 && is_one_of(index->dtype, {kI32, kI64}),
          "positions are integers along one axis");
  const auto along = static_cast<size_t>(dim);
  std::vector<int64_t> expected = self->shape;
  expected[along] = View(*index).count();
  REQUIRE(out->shape == expected && out->dtype == self->dtype,
          "the result has an unexpected dtype or shape");
  return plan(
      "aclnnIndexSelect", {self, index, out},
      [=](std::vector<View>& views) {
        for (int64_t i = 0, n = views[2].count(); i < n; ++i) {
          Coordinates coordinates = coordinates_of(i, views[2].of.shape);
          const int64_t to = offset_of(views[2], coordinates);
          const int64_t position =
              views[1].integer(views[1].offset(coordinates[along], {expected[along]}));
          if (position < 0 || position >= views[0].of.shape[along]) continue;  // undefined
          coordinates[along] = position;
          copy_element(views[0], offset_of(views[0], coordinates), views[2], to);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnIndexSelect)

// out is self, with rows of `source` in coordinates of those that `index` names.
ACLNN_EXPORT int aclnnIndexCopyGetWorkspaceSize(aclTensor* self, int64_t dim,
                                                const aclTensor* index, const aclTensor* source,
                                                aclTensor* out, uint64_t* bytes,
                                                aclOpExecutor** executor) {
  NEEDS(self, index, source, out);
  REQUIRE(!self->shape.empty() && resolve_axis(dim, self->shape.size()),
          "the axis is out of range");
  REQUIRE(index->shape.size() == 1 && is_one_of(index->dtype, {kI32, kI64}),
          "positions are integers along one axis");
  const auto along = static_cast<size_t>(dim);
  std::vector<int64_t> expected = self->shape;
  expected[along] = index->shape[0];
  REQUIRE(source->shape == expected && out->shape == self->shape && source->dtype == self->dtype &&
              out->dtype == self->dtype,
          "dtypes or shapes do not agree");
  return plan(
      "aclnnIndexCopy", {self, index, source, out},
      [=](std::vector<View>& views) {
        const std::vector<int64_t> shape = views[3].of.shape;
        for (int64_t i = 0, n = views[3].count(); i < n; ++i) {
          const Coordinates coordinates = coordinates_of(i, shape);
          copy_element(views[0], offset_of(views[0], coordinates), views[3],
                       offset_of(views[3], coordinates));
        }
        for (int64_t i = 0, n = views[2].count(); i < n; ++i) {
          Coordinates coordinates = coordinates_of(i, views[2].of.shape);
          const int64_t from = offset_of(views[2], coordinates);
          coordinates[along] = views[1].integer(offset_of(views[1], {coordinates[along]}));
          if (coordinates[along] < 0 || coordinates[along] >= shape[along]) continue;  // undefined
          copy_element(views[2], from, views[3], offset_of(views[3], coordinates));
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnIndexCopy)

ACLNN_EXPORT int aclnnGatherNdGetWorkspaceSize(const aclTensor* self, const aclTensor* indices,
                                               bool negative, aclTensor* out, uint64_t* bytes,
                                               aclOpExecutor** executor) {
  NEEDS(self, indices, out);
  REQUIRE(is_one_of(self->dtype, {kI64, kI32, kI8, kU8, kBool, kF32, kF16, kBf16}) &&
              out->dtype == self->dtype,
          "a dtype is not served");
  REQUIRE(is_one_of(indices->dtype, {kI32, kI64}), "positions are int32 or int64");
  REQUIRE(!self->shape.empty() && !indices->shape.empty(), "expected one axis or more");
  const int64_t depth = indices->shape.back();
  REQUIRE(depth <= static_cast<int64_t>(self->shape.size()), "too many coordinates");
  std::vector<int64_t> expected(indices->shape.begin(), indices->shape.end() - 1);
  expected.insert(expected.end(), self->shape.begin() + depth, self->shape.end());
  REQUIRE(out->shape == expected, "the result has an unexpected shape");
  return plan(
      "aclnnGatherNd", {self, indices, out},
      [=](std::vector<View>& views) {
        const auto leading = static_cast<int64_t>(views[1].of.shape.size()) - 1;
        for (int64_t i = 0, n = views[2].count(); i < n; ++i) {
          const Coordinates to = coordinates_of(i, views[2].of.shape);
          Coordinates coordinate(to.begin(), to.begin() + leading), from;
          bool is_inside = true;
          for (int64_t axis = 0; axis < depth; ++axis) {
            coordinate.push_back(axis);
            int64_t position = views[1].integer(offset_of(views[1], coordinate));
            coordinate.pop_back();
            const int64_t extent = views[0].of.shape[static_cast<size_t>(axis)];
            if (position < 0 && negative) position += extent;
            is_inside &= position >= 0 && position < extent;
            from.push_back(position);
          }
          if (!is_inside) continue;  // undefined
          from.insert(from.end(), to.begin() + leading, to.end());
          copy_element(views[0], offset_of(views[0], from), views[2], offset_of(views[2], to));
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnGatherNd)

// NaN comes after everything else, and first if the order is descending.
template <class T>
bool comes_before(T a, T b, bool descending) {
  if (a != a || b != b) return descending ? a != a && b == b : a == a && b != b;
  return descending ? a > b : a < b;
}

// The positions along `axis` in the order of the elements.
template <class T, class Read>
std::vector<int64_t> order_of(int64_t extent, bool descending, Read read) {
  std::vector<T> keys;
  for (int64_t k = 0; k < extent; ++k) keys.push_back(read(k));
  std::vector<int64_t> order(static_cast<size_t>(extent));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return comes_before(keys[static_cast<size_t>(a)], keys[static_cast<size_t>(b)], descending);
  });
  return order;
}

// Writes the first elements of that order, as many as the results have, and their positions.
void write_in_order(std::vector<View>& views, int64_t axis, bool descending) {
  View &from = views[0], &values = views[1], &positions = views[2];
  const auto along = static_cast<size_t>(axis);
  std::vector<int64_t> lines = from.of.shape;
  const int64_t extent = lines[along], kept = values.of.shape[along];
  lines[along] = 1;
  int64_t n = 1;
  for (int64_t one : lines) n *= one;
  for (int64_t i = 0; i < n; ++i) {
    Coordinates coordinates = coordinates_of(i, lines);
    const auto at = [&](const View& view, int64_t k) {
      coordinates[along] = k;
      return offset_of(view, coordinates);
    };
    const std::vector<int64_t> order =
        is_float(from.of.dtype)
            ? order_of<double>(extent, descending,
                               [&](int64_t k) { return from.number(at(from, k)); })
            : order_of<int64_t>(extent, descending,
                                [&](int64_t k) { return from.integer(at(from, k)); });
    for (int64_t k = 0; k < kept; ++k) {
      const int64_t source = order[static_cast<size_t>(k)];
      copy_element(from, at(from, source), values, at(values, k));
      positions.store(at(positions, k), source);
    }
  }
}

ACLNN_EXPORT int aclnnSortGetWorkspaceSize(const aclTensor* self, bool stable, int64_t dim,
                                           bool descending, aclTensor* values, aclTensor* indices,
                                           uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, values, indices);
  REQUIRE(stable, "an order that is not stable is not simulated");
  REQUIRE(self->dtype != kF64 && !self->shape.empty(), "a dtype or shape is not served");
  REQUIRE(resolve_axis(dim, self->shape.size()), "the axis is out of range");
  REQUIRE(self->dtype != kBf16 || dim != 1, "bfloat16 is not sorted along axis 1");
  REQUIRE(values->dtype == self->dtype && indices->dtype == kI64 && values->shape == self->shape &&
              indices->shape == self->shape,
          "the results have an unexpected dtype or shape");
  return plan(
      "aclnnSort", {self, values, indices},
      [=](std::vector<View>& views) { write_in_order(views, dim, descending); }, bytes, executor);
}
ACLNN_EXECUTE(aclnnSort)

ACLNN_EXPORT int aclnnTopkGetWorkspaceSize(const aclTensor* self, int64_t k, int64_t dim,
                                           bool largest, bool sorted, aclTensor* values,
                                           aclTensor* indices, uint64_t* bytes,
                                           aclOpExecutor** executor) {
  NEEDS(self, values, indices);
  REQUIRE(sorted, "sorted is true");
  REQUIRE(self->dtype != kBool && !self->shape.empty(), "a dtype or shape is not served");
  REQUIRE(resolve_axis(dim, self->shape.size()), "the axis is out of range");
  std::vector<int64_t> expected = self->shape;
  REQUIRE(k >= 0 && k <= expected[static_cast<size_t>(dim)], "k is out of range");
  expected[static_cast<size_t>(dim)] = k;
  REQUIRE(values->dtype == self->dtype && indices->dtype == kI64 && values->shape == expected &&
              indices->shape == expected,
          "the results have an unexpected dtype or shape");
  return plan(
      "aclnnTopk", {self, values, indices},
      [=](std::vector<View>& views) { write_in_order(views, dim, largest); }, bytes, executor);
}
ACLNN_EXECUTE(aclnnTopk)

// One sequence for all values; several are not simulated.
ACLNN_EXPORT int aclnnSearchSortedGetWorkspaceSize(const aclTensor* sequence, const aclTensor* self,
                                                   const bool out_int32, const bool right,
                                                   const aclTensor* sorter, aclTensor* out,
                                                   uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(sequence, self, out);
  REQUIRE(!sorter && sequence->shape.size() == 1,
          "a sorter or several sequences are not simulated");
  REQUIRE(self->dtype != kBf16 && self->dtype != kBool && self->dtype == sequence->dtype,
          "a dtype is not served");
  REQUIRE(out->dtype == (out_int32 ? kI32 : kI64) && out->shape == self->shape,
          "the result has an unexpected dtype or shape");
  return plan(
      "aclnnSearchSorted", {sequence, self, out},
      [=](std::vector<View>& views) {
        const auto search = [&](auto read, int64_t at) {
          const auto x = read(views[1], at);
          int64_t j = 0;
          const int64_t n = views[0].count();
          while (j < n) {
            const auto s = read(views[0], offset_of(views[0], {j}));
            if (right ? s > x : s >= x) break;
            ++j;
          }
          return j;
        };
        const std::vector<int64_t>& shape = views[1].of.shape;
        for (int64_t i = 0, n = views[1].count(); i < n; ++i) {
          const int64_t at = views[1].offset(i, shape);
          const int64_t found =
              is_float(views[1].of.dtype)
                  ? search([](const View& view, int64_t k) { return view.number(k); }, at)
                  : search([](const View& view, int64_t k) { return view.integer(k); }, at);
          views[2].store(views[2].offset(i, shape), found);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnSearchSorted)

enum class Write { kReplace, kAdd };

void write_element(const View& from, int64_t at, View& to, int64_t to_at, Write how) {
  if (how == Write::kReplace)
    copy_element(from, at, to, to_at);
  else if (is_float(to.of.dtype))
    to.store(to_at, to.number(to_at) + from.number(at));
  else
    to.store(to_at, to.integer(to_at) + from.integer(at));
}

void copy_all(const View& from, View& to) {
  for (int64_t i = 0, n = to.count(); i < n; ++i)
    copy_element(from, from.offset(i, to.of.shape), to, to.offset(i, to.of.shape));
}

// Writes at positions along an axis; those that count from the end are outside.
int scatter(const char* name, const aclTensor* self, int64_t dim, const aclTensor* index,
            const aclTensor* source, aclTensor* out, Write how, uint64_t* bytes,
            aclOpExecutor** executor) {
  if (!all_alive({self, index, source, out}))
    return refuse(name, kNullPointer, "a tensor is nullptr or was destroyed");
  const size_t ndim = self->shape.size();
  if (!resolve_axis(dim, ndim) || !is_one_of(index->dtype, {kI32, kI64}))
    return refuse(name, kInvalid, "the axis is out of range, or positions are no integers");
  if (source->dtype != self->dtype || out->dtype != self->dtype || out->shape != self->shape ||
      index->shape.size() != ndim || source->shape.size() != ndim)
    return refuse(name, kInvalid, "dtypes or shapes do not agree");
  for (size_t i = 0; i < ndim; ++i)
    if (index->shape[i] > source->shape[i] ||
        (static_cast<int64_t>(i) != dim && index->shape[i] > self->shape[i]))
      return refuse(name, kInvalid, "there are more positions than elements");
  return plan(
      name, {self, index, source, out},
      [=](std::vector<View>& views) {
        copy_all(views[0], views[3]);
        for (int64_t i = 0, n = views[1].count(); i < n; ++i) {
          Coordinates coordinates = coordinates_of(i, views[1].of.shape);
          const int64_t from = offset_of(views[2], coordinates);
          const int64_t position = views[1].integer(offset_of(views[1], coordinates));
          if (position < 0 ||
              position >= (coordinates.empty() ? 1 : views[3].of.shape[static_cast<size_t>(dim)]))
            continue;  // undefined
          if (!coordinates.empty()) coordinates[static_cast<size_t>(dim)] = position;
          write_element(views[2], from, views[3], offset_of(views[3], coordinates), how);
        }
      },
      bytes, executor);
}

ACLNN_EXPORT int aclnnScatterAddGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                                 const aclTensor* index, const aclTensor* source,
                                                 aclTensor* out, uint64_t* bytes,
                                                 aclOpExecutor** executor) {
  return scatter("aclnnScatterAdd", self, dim, index, source, out, Write::kAdd, bytes, executor);
}
ACLNN_EXECUTE(aclnnScatterAdd)

ACLNN_EXPORT int aclnnScatterGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                              const aclTensor* index, const aclTensor* source,
                                              int64_t reduce, aclTensor* out, uint64_t* bytes,
                                              aclOpExecutor** executor) {
  REQUIRE(reduce == 0 || reduce == 1, "this reduction is not simulated");
  return scatter("aclnnScatter", self, dim, index, source, out,
                 reduce ? Write::kAdd : Write::kReplace, bytes, executor);
}
ACLNN_EXECUTE(aclnnScatter)

ACLNN_EXPORT int aclnnIndexAddGetWorkspaceSize(const aclTensor* self, const int64_t dim,
                                               const aclTensor* index, const aclTensor* source,
                                               const aclScalar* alpha, aclTensor* out,
                                               uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, index, source, out);
  int64_t axis = dim;
  REQUIRE(is_alive(alpha) && alpha->number == 1, "other factors than 1 are not simulated");
  REQUIRE(!self->shape.empty() && resolve_axis(axis, self->shape.size()),
          "the axis is out of range");
  REQUIRE(index->shape.size() <= 1 && is_one_of(index->dtype, {kI32, kI64}),
          "positions are integers along one axis");
  const auto along = static_cast<size_t>(axis);
  std::vector<int64_t> expected = self->shape;
  expected[along] = View(*index).count();
  REQUIRE(source->shape == expected && source->dtype == self->dtype && out->dtype == self->dtype &&
              out->shape == self->shape,
          "dtypes or shapes do not agree");
  return plan(
      "aclnnIndexAdd", {self, index, source, out},
      [=](std::vector<View>& views) {
        copy_all(views[0], views[3]);
        for (int64_t i = 0, n = views[2].count(); i < n; ++i) {
          Coordinates coordinates = coordinates_of(i, views[2].of.shape);
          const int64_t from = offset_of(views[2], coordinates);
          const int64_t position =
              views[1].integer(views[1].offset(coordinates[along], {views[2].of.shape[along]}));
          if (position < 0 || position >= views[3].of.shape[along]) continue;  // undefined
          coordinates[along] = position;
          write_element(views[2], from, views[3], offset_of(views[3], coordinates), Write::kAdd);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnIndexAdd)

// Positions along the first axes, without masks.
ACLNN_EXPORT int aclnnIndexPutImplGetWorkspaceSize(aclTensor* self, const aclTensorList* indices,
                                                   const aclTensor* values, const bool accumulate,
                                                   const bool unsafe, uint64_t* bytes,
                                                   aclOpExecutor** executor) {
  NEEDS(self, values);
  if (!is_alive(indices))
    return refuse(__func__, kNullPointer, "the list is nullptr or was destroyed");
  const std::vector<const aclTensor*>& all = indices->tensors;
  REQUIRE(unsafe && !all.empty() && all.size() <= self->shape.size(),
          "expected positions for one or more of the axes");
  std::vector<int64_t> shape;  // of all positions, then of what is behind their axes
  for (const aclTensor* index : all) {
    NEEDS(index);
    REQUIRE(index->dtype == all[0]->dtype && is_one_of(index->dtype, {kI32, kI64}) &&
                !index->shape.empty(),
            "positions are integers of one dtype");
    if (index->shape.size() > shape.size())
      shape.insert(shape.begin(), index->shape.size() - shape.size(), 1);
    for (size_t i = 1; i <= index->shape.size(); ++i)
      if (shape[shape.size() - i] == 1)
        shape[shape.size() - i] = index->shape[index->shape.size() - i];
  }
  for (const aclTensor* index : all)
    REQUIRE(broadcasts(index->shape, shape), "positions do not broadcast together");
  const std::vector<int64_t> positions = shape;
  const auto axes = static_cast<std::ptrdiff_t>(all.size());
  shape.insert(shape.end(), self->shape.begin() + axes, self->shape.end());
  REQUIRE(values->dtype == self->dtype && broadcasts(values->shape, shape),
          "the values have an unexpected dtype or shape");
  std::vector<const aclTensor*> tensors = {self};
  tensors.insert(tensors.end(), all.begin(), all.end());
  tensors.push_back(values);
  return plan(
      "aclnnIndexPutImpl", tensors,
      [=](std::vector<View>& views) {
        int64_t n = 1, behind = 1;
        for (int64_t extent : shape) n *= extent;
        for (size_t i = positions.size(); i < shape.size(); ++i) behind *= shape[i];
        for (int64_t i = 0; i < n; ++i) {
          const Coordinates coordinates = coordinates_of(i, shape);
          Coordinates to;
          bool is_inside = true;
          for (std::ptrdiff_t axis = 0; axis < axes; ++axis) {
            const View& index = views[static_cast<size_t>(axis) + 1];
            to.push_back(index.integer(index.offset(i / behind, positions)));
            is_inside &= to.back() >= 0 && to.back() < views[0].of.shape[to.size() - 1];
          }
          if (!is_inside) continue;  // an error on the chip
          to.insert(to.end(), coordinates.begin() + static_cast<std::ptrdiff_t>(positions.size()),
                    coordinates.end());
          write_element(views.back(), views.back().offset(i, shape), views[0],
                        offset_of(views[0], to), accumulate ? Write::kAdd : Write::kReplace);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnIndexPutImpl)

}  // namespace
}  // namespace simulated::aclnn
