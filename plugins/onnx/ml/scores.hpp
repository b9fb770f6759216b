// SPDX-License-Identifier: Apache-2.0
// What operators of ai.onnx.ml share: labels, and what is made of scores.
#pragma once

#include <string>
#include <vector>

#include "conversion.hpp"

namespace tenon::onnx {

// X as float64 where it is that, else as float32.
Tensor as_floats(Conversion& c, const Tensor& x);
// [rows, columns] of an input of one or two axes.
Tensor as_rows(Conversion& c, const Tensor& x);
// A known tensor of these numbers.
Tensor known_table(const Floats& numbers, const Ints& shape, int32_t dtype = TENON_DTYPE_F32);
Tensor known_truths(const std::vector<bool>& truths);

// NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT of the last axis.
Tensor post_transformed(Conversion& c, const Tensor& scores, const std::string& transform);

// The classes of a classifier: attributes `strings` and `ints`, one of which is given.
struct Labels {
  Labels(Conversion& c, const char* strings, const char* integers);
  size_t count() const { return texts.empty() ? numbers.size() : texts.size(); }
  // Of the class with this number, which may depend on the inputs.
  Value at(Conversion& c, const Tensor& number) const;

  Texts texts;
  Ints numbers;
};

// Of two classes with one score, that of the second one: it is the second class above `threshold`, and the first one's score is the
// rest to 1, or the second one's below 0.
struct Binary {
  double threshold;
  bool is_rest;
};
// Label and scores of a classifier whose scores are [rows, classes], or [rows, 1] of two classes.
Values classified(Conversion& c, const Labels& labels, const Tensor& scores,
                  const std::string& transform, Binary binary);

}  // namespace tenon::onnx
