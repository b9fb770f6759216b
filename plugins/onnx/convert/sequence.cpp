// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals: how many tensors there are is known when the model is imported, so that these operators make no steps.
#include <algorithm>

#include "convert/converters.hpp"

namespace tenon::onnx {
namespace {

const Values& sequence_of(Conversion& c, size_t index) {
  const Values* list = index < c.inputs().size() ? c.inputs()[index].get<Values>() : nullptr;
  if (!list) c.fail("input " + std::to_string(index) + ": expected a sequence");
  return *list;
}

Values one(Value value) {
  Values results;
  results.push_back(std::move(value));
  return results;
}

// From -count to count - 1, and count itself where something is put in.
ptrdiff_t place_of(Conversion& c, const Value& position, size_t count, bool may_be_end) {
  const auto size = static_cast<int64_t>(count);
  if (position.is_none()) return may_be_end ? size : size - 1;
  const int64_t given = int_of(position, "position");
  if (given < -size || given > size - (may_be_end ? 0 : 1))
    c.fail("position: expected one of a sequence of " + std::to_string(size) + ", got " +
           std::to_string(given));
  return given < 0 ? given + size : given;
}

}  // namespace

Values convert_sequence_construct(Conversion& c) { return one(c.inputs()); }
Values convert_sequence_empty(Conversion&) { return one(Values()); }

Values convert_sequence_at(Conversion& c) {
  const Values& list = sequence_of(c, 0);
  return one(list[static_cast<size_t>(place_of(c, c.inputs().at(1), list.size(), false))]);
}

Values convert_sequence_insert(Conversion& c) {
  Values list = sequence_of(c, 0);
  const Value position = c.inputs().size() > 2 ? c.inputs()[2] : Value();
  list.insert(list.begin() + place_of(c, position, list.size(), true), c.inputs().at(1));
  return one(std::move(list));
}

Values convert_sequence_erase(Conversion& c) {
  Values list = sequence_of(c, 0);
  if (list.empty()) c.fail("expected a sequence with an element, got an empty one");
  const Value position = c.inputs().size() > 1 ? c.inputs()[1] : Value();
  list.erase(list.begin() + place_of(c, position, list.size(), false));
  return one(std::move(list));
}

Values convert_sequence_length(Conversion& c) {
  return one(known_int(static_cast<int64_t>(sequence_of(c, 0).size())));
}

Values convert_split_to_sequence(Conversion& c) {
  const Tensor& input = c.tensor("input");
  const int64_t axis = normal_axis(c.integer("axis"), input->ndim, "axis"),
                length = input->shape[axis];
  Ints sizes;
  const bool is_split = c.has("split");
  if (!is_split) {
    if (length > int64_t{1} << 16) c.refuse("a sequence of " + std::to_string(length) + " tensors");
    sizes.assign(static_cast<size_t>(length), 1);
  } else {
    const Tensor& split = c.tensor("split");
    sizes = ints_of(split, "split");
    if (split->ndim == 0) {
      const int64_t size = sizes[0];
      if (size < 1 || length / size > int64_t{1} << 16)
        c.fail("split: expected a size of at least 1");
      sizes.clear();
      for (int64_t start = 0; start < length; start += size)
        sizes.push_back(std::min(size, length - start));
    }
  }
  Values pieces;
  int64_t start = 0;
  for (int64_t size : sizes) {
    Tensor piece = c.call("narrow", {input, axis, start, size});
    if (!is_split && c.integer("keepdims", 1) == 0) piece = c.call("squeeze", {piece, Ints{axis}});
    pieces.emplace_back(piece);
    start += size;
  }
  if (start != length) c.fail("split: expected sizes that add up to " + std::to_string(length));
  return one(std::move(pieces));
}

Values convert_concat_from_sequence(Conversion& c) {
  const Values& list = sequence_of(c, 0);
  if (list.empty()) c.fail("expected a sequence with an element, got an empty one");
  return {c.call(c.integer("new_axis") != 0 ? "stack" : "concat", {list, c.integer("axis")})};
}

// An optional is its element, or nothing.
Values convert_optional(Conversion& c) { return one(c.inputs().empty() ? Value() : c.inputs()[0]); }

Values convert_optional_get_element(Conversion& c) {
  if (c.inputs().empty() || c.inputs()[0].is_none())
    c.fail("expected an element, got an empty optional");
  return one(c.inputs()[0]);
}

Values convert_optional_has_element(Conversion& c) {
  Tensor has = make_known(TENON_DTYPE_BOOL, {});
  *static_cast<bool*>(has->data) = !c.inputs().empty() && !c.inputs()[0].is_none();
  return one(has);
}

}  // namespace tenon::onnx
