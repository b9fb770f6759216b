// SPDX-License-Identifier: Apache-2.0
// NonZero, Compress, Unique, NonMaxSuppression: the size of a result depends on data, so that these are known when the model is imported.
#include <algorithm>
#include <limits>
#include <numeric>

#include "convert/converters.hpp"

namespace tenon::onnx {
namespace {

// The tensor, if its data are known; a program of fixed sizes has no room for other results.
const Tensor& known(Conversion& c, std::string_view name) {
  const Tensor& tensor = c.tensor(name);
  if (!is_known(tensor))
    c.refuse("expected input `" + std::string(name) +
             "` to be known when the model is loaded, as the size of the result depends on its "
             "data, got one that depends on the inputs; fix it by values={...}");
  return tensor;
}

// A box with its corners in order: first the smaller ones.
struct Box {
  float low[2], high[2];
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

Box box_of(const float* numbers, bool is_centre) {
  Box box;
  for (int axis = 0; axis < 2; ++axis) {
    // A centre's box is x, y, width, height; corners are y0, x0, y1, x1.
    const float a = is_centre ? numbers[axis] - numbers[axis + 2] / 2 : numbers[axis],
                b = is_centre ? numbers[axis] + numbers[axis + 2] / 2 : numbers[axis + 2];
    box.low[axis] = std::min(a, b);
    box.high[axis] = std::max(a, b);
  }
  return box;
}

bool is_suppressed(const Box& a, const Box& b, float threshold) {
  float shared = 1;
  for (int axis = 0; axis < 2; ++axis)
    shared *=
        std::max(0.0f, std::min(a.high[axis], b.high[axis]) - std::max(a.low[axis], b.low[axis]));
  if (!(shared > 0) || a.area() <= 0 || b.area() <= 0) return false;
  return shared / (a.area() + b.area() - shared) > threshold;
}

// The boxes that are kept, by falling score; equal scores keep their order.
Ints kept_boxes(const std::vector<Box>& boxes, const float* scores, int64_t most, float overlap,
                float least) {
  Ints order, kept;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (scores[i] > least) order.push_back(static_cast<int64_t>(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t index : order) {
    if (static_cast<int64_t>(kept.size()) >= most) break;
    const Box& box = boxes[static_cast<size_t>(index)];
    if (std::none_of(kept.begin(), kept.end(), [&](int64_t other) {
          return is_suppressed(boxes[static_cast<size_t>(other)], box, overlap);
        }))
      kept.push_back(index);
  }
  return kept;
}

}  // namespace

// Rows of (batch, class, box).
Values convert_non_max_suppression(Conversion& c) {
  const Tensor boxes = c.call("contiguous", {known(c, "boxes")}),
               scores = c.call("contiguous", {known(c, "scores")});
  if (boxes->ndim != 3 || scores->ndim != 3 || boxes->shape[2] != 4 ||
      boxes->shape[0] != scores->shape[0] || boxes->shape[1] != scores->shape[2] ||
      boxes->dtype != TENON_DTYPE_F32 || scores->dtype != TENON_DTYPE_F32)
    c.fail("expected boxes float32 [batches, N, 4] and scores float32 [batches, classes, N], got " +
           describe(*boxes.get()) + " and " + describe(*scores.get()));
  const auto number = [&](const char* name, double otherwise) {
    return c.has(name) ? float_of(c.input(name), name) : otherwise;
  };
  const int64_t most =
      c.has("max_output_boxes_per_class")
          ? int_of(c.input("max_output_boxes_per_class"), "max_output_boxes_per_class")
          : 0;
  const auto overlap = static_cast<float>(number("iou_threshold", 0)),
             least = static_cast<float>(
                 number("score_threshold", -std::numeric_limits<double>::infinity()));
  const bool is_centre = c.integer("center_point_box") != 0;
  const int64_t batches = boxes->shape[0], count = boxes->shape[1], classes = scores->shape[1];
  const auto *numbers = static_cast<const float*>(boxes->data),
             *weights = static_cast<const float*>(scores->data);
  Ints rows;
  for (int64_t batch = 0; batch < batches; ++batch) {
    std::vector<Box> listed;
    for (int64_t i = 0; i < count; ++i)
      listed.push_back(box_of(numbers + (batch * count + i) * 4, is_centre));
    for (int64_t kind = 0; kind < classes; ++kind)
      for (int64_t box :
           kept_boxes(listed, weights + (batch * classes + kind) * count, most, overlap, least))
        rows.insert(rows.end(), {batch, kind, box});
  }
  return {c.call("reshape", {known_ints(rows), Ints{static_cast<int64_t>(rows.size()) / 3, 3}})};
}

// ONNX has an axis a row, Tenon an element a row.
Values convert_nonzero(Conversion& c) {
  return {c.call("permute", {c.call("nonzero", {known(c, "X")})})};
}

Values convert_compress(Conversion& c) {
  Tensor input = c.tensor("input");
  const Ints condition = ints_of(known(c, "condition"), "condition");
  const bool is_flat = !c.has_attribute("axis");
  if (is_flat) input = c.call("reshape", {input, Ints{-1}});
  const int64_t axis = is_flat ? 0 : normal_axis(c.integer("axis"), input->ndim, "axis");
  Ints taken;
  for (size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) taken.push_back(static_cast<int64_t>(i));
  return {c.call("index_select", {input, known_ints(taken), axis})};
}

// Rows of a known tensor along an axis, equal ones once.
Values convert_unique(Conversion& c) {
  Tensor x = known(c, "X");
  const bool is_flat = !c.has_attribute("axis");
  if (is_flat) x = c.call("reshape", {x, Ints{-1}});
  const int64_t axis = is_flat ? 0 : normal_axis(c.integer("axis"), x->ndim, "axis");
  const Tensor rows = c.call("contiguous", {c.call("movedim", {x, Ints{axis}, Ints{0}})});
  if (rows->dtype > TENON_DTYPE_F64) c.refuse("expected numbers, got " + describe(*x.get()));
  const Floats elements = floats_of(rows, "X");
  const int64_t count = rows->shape[0], width = count ? rows->numel / count : 0;
  const auto row = [&](int64_t index) { return elements.begin() + index * width; };
  // Integers that float64 does not hold would be taken for equal.
  for (double element : elements)
    if (rows->dtype <= TENON_DTYPE_I64 && std::abs(element) > 9007199254740992.0)
      c.refuse("expected integers within 2^53");
  Ints order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(row(a), row(a) + width, row(b), row(b) + width);
  });
  Ints first, inverse(static_cast<size_t>(count)), counts;
  for (int64_t index : order) {
    if (first.empty() || !std::equal(row(index), row(index) + width, row(first.back()))) {
      first.push_back(index);
      counts.push_back(0);
    }
    inverse[static_cast<size_t>(index)] = static_cast<int64_t>(first.size()) - 1;
    ++counts.back();
  }
  if (c.integer("sorted", 1) == 0) {  // in the order in which they appear
    Ints place(first.size());
    std::iota(place.begin(), place.end(), 0);
    std::sort(place.begin(), place.end(), [&](int64_t a, int64_t b) {
      return first[static_cast<size_t>(a)] < first[static_cast<size_t>(b)];
    });
    Ints moved(first.size()), sorted_first, sorted_counts;
    for (size_t i = 0; i < place.size(); ++i) {
      moved[static_cast<size_t>(place[i])] = static_cast<int64_t>(i);
      sorted_first.push_back(first[static_cast<size_t>(place[i])]);
      sorted_counts.push_back(counts[static_cast<size_t>(place[i])]);
    }
    for (int64_t& at : inverse) at = moved[static_cast<size_t>(at)];
    first = std::move(sorted_first);
    counts = std::move(sorted_counts);
  }
  return {c.call("index_select", {x, known_ints(first), axis}), known_ints(first),
          known_ints(inverse), known_ints(counts)};
}

}  // namespace tenon::onnx
