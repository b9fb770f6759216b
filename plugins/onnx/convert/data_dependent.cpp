// SPDX-License-Identifier: Apache-2.0
// NonZero, Compress, Unique: the size of a result depends on data, so that these are known when the model is imported.
#include <algorithm>
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

}  // namespace

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
