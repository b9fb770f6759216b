// SPDX-License-Identifier: Apache-2.0
#include "ml/scores.hpp"

#include <cmath>
#include <cstring>

#include "text/texts.hpp"

namespace tenon::onnx {

Tensor as_floats(Conversion& c, const Tensor& x) { return c.cast(x, wide_dtype(x)); }

Tensor as_rows(Conversion& c, const Tensor& x) {
  if (x->ndim == 1) return c.call("unsqueeze", {x, Ints{0}});
  if (x->ndim != 2) c.fail("expected X of one or two axes, got " + describe(*x.get()));
  return x;
}

Tensor known_table(const Floats& numbers, const Ints& shape, int32_t dtype) {
  Tensor table = make_known(dtype, shape);
  if (static_cast<size_t>(table->numel) != numbers.size())
    throw Error(TENON_INVALID_ARGUMENT, "expected " + std::to_string(table->numel) +
                                            " numbers, got " + std::to_string(numbers.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (dtype == TENON_DTYPE_F64)
      static_cast<double*>(table->data)[i] = numbers[i];
    else
      static_cast<float*>(table->data)[i] = static_cast<float>(numbers[i]);
  }
  return table;
}

Tensor known_truths(const std::vector<bool>& truths) {
  Tensor table = make_known(TENON_DTYPE_BOOL, {static_cast<int64_t>(truths.size())});
  for (size_t i = 0; i < truths.size(); ++i) static_cast<bool*>(table->data)[i] = truths[i];
  return table;
}

Tensor post_transformed(Conversion& c, const Tensor& scores, const std::string& transform) {
  if (transform == "NONE") return scores;
  if (transform == "LOGISTIC") return c.call("sigmoid", {scores});
  if (transform == "SOFTMAX") return c.call("softmax", {scores, int64_t{-1}});
  if (transform == "PROBIT")
    return c.call("multiply",
                  {c.call("erfinv", {c.call("subtract", {c.call("multiply", {scores, 2.0}), 1.0})}),
                   std::sqrt(2.0)});
  if (transform != "SOFTMAX_ZERO")
    c.fail(
        "attribute `post_transform`: expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT, got "
        "`" +
        transform + "`");
  // Scores of 0 stay near 0 and are no part of the sum.
  const Tensor top = c.call("max", {scores, Ints{-1}, true}),
               grown = c.call("exp", {c.call("subtract", {scores, top})}),
               none = c.call("less_equal", {c.call("abs", {scores}), 1e-7}),
               small = c.call("multiply", {scores, c.call("exp", {c.call("negative", {top})})}),
               sum = c.call("sum", {c.call("where", {none, 0.0, grown}), Ints{-1}, true});
  return c.call("divide", {c.call("where", {none, small, grown}), sum});
}

Labels::Labels(Conversion& c, const char* strings, const char* integers) {
  if (const Value given = c.attribute(strings); given.get<Texts>()) texts = *given.get<Texts>();
  if (c.has_attribute(integers)) numbers = c.integers(integers);
  if (texts.empty() == numbers.empty())
    c.fail(std::string("expected attribute `") + strings + "` or `" + integers + "`, one of both");
}

Value Labels::at(Conversion& c, const Tensor& number) const {
  if (!texts.empty()) return texts_at(c, number, texts);
  return c.call("index_select", {known_ints(numbers), number, 0});
}

Values classified(Conversion& c, const Labels& labels, const Tensor& scores,
                  const std::string& transform, Binary binary) {
  const int64_t columns = scores->shape[1];
  const auto classes = static_cast<int64_t>(labels.count());
  if (columns != 1 || classes != 2) {
    if (columns != classes)
      c.fail("expected scores of " + std::to_string(classes) + " classes, got " +
             std::to_string(columns));
    return {labels.at(c, c.call("argmax", {scores, int64_t{1}})),
            post_transformed(c, scores, transform)};
  }
  const Tensor is_second =
      c.call("greater", {c.call("squeeze", {scores, Ints{1}}), binary.threshold});
  Tensor first, second = scores;
  if (transform == "NONE") {
    first = binary.is_rest ? c.call("subtract", {1.0, scores}) : c.call("negative", {scores});
  } else if (transform == "LOGISTIC" && binary.threshold == 0) {
    first = c.call("sigmoid", {c.call("negative", {scores})});
    second = c.call("sigmoid", {scores});
  } else {
    c.refuse("attribute `post_transform`: `" + transform + "` of one score for two classes");
  }
  return {labels.at(c, c.cast(is_second, TENON_DTYPE_I64)),
          c.call("concat", {Values{first, second}, int64_t{1}})};
}

}  // namespace tenon::onnx
