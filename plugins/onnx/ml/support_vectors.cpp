// SPDX-License-Identifier: Apache-2.0
// SVMRegressor and SVMClassifier.
#include "convert/converters.hpp"
#include "ml/scores.hpp"

namespace tenon::onnx {
namespace {

Floats list_of(Conversion& c, const char* name) {
  const Value value = c.attribute(name);
  return value.is_none() ? Floats() : floats_of(value, name);
}

// What the kernel makes of each row of x [rows, features] and each row of `vectors`.
Tensor kernel(Conversion& c, const Tensor& x, const Tensor& vectors) {
  const std::string type = c.text("kernel_type");
  Floats parameters = list_of(c, "kernel_params");
  if (parameters.empty()) parameters = {0, 0, 0};
  if (parameters.size() != 3)
    c.fail("attribute `kernel_params`: expected gamma, coef0 and degree, got " +
           std::to_string(parameters.size()) + " numbers");
  const double gamma = parameters[0], offset = parameters[1], degree = parameters[2];
  const Tensor products = c.call("linear", {x, vectors});
  if (type == "LINEAR") return products;
  const auto scaled = [&] {
    return c.call("add", {c.call("multiply", {products, gamma}), offset});
  };
  if (type == "POLY") return c.call("pow", {scaled(), degree});
  if (type == "SIGMOID") return c.call("tanh", {scaled()});
  if (type != "RBF")
    c.fail("attribute `kernel_type`: expected LINEAR, POLY, RBF or SIGMOID, got `" + type + "`");
  // The difference itself, as its square from products loses digits.
  const Tensor apart = c.call("subtract", {c.call("unsqueeze", {x, Ints{1}}), vectors}),
               square = c.call("sum", {c.call("multiply", {apart, apart}), Ints{2}});
  return c.call("exp", {c.call("multiply", {square, -gamma})});
}

Tensor input_of(Conversion& c) { return as_rows(c, c.cast(c.tensor("X"), TENON_DTYPE_F32)); }

Tensor vectors_of(Conversion& c, int64_t count, int64_t features) {
  const Floats numbers = list_of(c, "support_vectors");
  if (static_cast<int64_t>(numbers.size()) != count * features)
    c.fail("attribute `support_vectors`: expected " + std::to_string(count) + " times " +
           std::to_string(features) + " numbers, got " + std::to_string(numbers.size()));
  return known_table(numbers, {count, features});
}

}  // namespace

Values convert_svm_regressor(Conversion& c) {
  const Tensor x = input_of(c);
  const Floats weights = list_of(c, "coefficients"), rho = list_of(c, "rho");
  if (rho.empty()) c.fail("expected attribute `rho`");
  const int64_t count = c.integer("n_supports");
  Tensor scores;
  if (count > 0) {
    if (static_cast<int64_t>(weights.size()) != count)
      c.fail("attribute `coefficients`: expected " + std::to_string(count) + ", got " +
             std::to_string(weights.size()));
    scores = c.call("linear", {kernel(c, x, vectors_of(c, count, x->shape[1])),
                               known_table(weights, {1, count})});
  } else {
    scores = c.call("linear", {x, known_table(weights, {1, x->shape[1]})});
  }
  scores = c.call("add", {scores, rho[0]});
  if (c.integer("one_class") != 0)
    return {c.call("where", {c.call("greater", {scores, 0.0}), c.call("full_like", {scores, 1.0}),
                             c.call("full_like", {scores, -1.0})})};
  return {post_transformed(c, scores, c.text("post_transform"))};
}

Values convert_svm_classifier(Conversion& c) {
  const Labels labels(c, "classlabels_strings", "classlabels_ints");
  const Tensor x = input_of(c);
  const auto classes = static_cast<int64_t>(labels.count());
  const Ints each = c.integers("vectors_per_class");
  const Floats weights = list_of(c, "coefficients"), rho = list_of(c, "rho"),
               prob_a = list_of(c, "prob_a"), prob_b = list_of(c, "prob_b");
  if (each.empty()) c.refuse("a classifier without support vectors; LinearClassifier is imported");
  if (static_cast<int64_t>(each.size()) != classes)
    c.fail("attribute `vectors_per_class`: expected " + std::to_string(classes) + ", got " +
           std::to_string(each.size()));
  Ints begins = {0};
  for (int64_t count : each) {
    if (count < 0 || count > int64_t{1} << 24)
      c.fail("attribute `vectors_per_class`: expected counts");
    begins.push_back(begins.back() + count);
  }
  const int64_t total = begins.back(), pairs = classes * (classes - 1) / 2;
  if (static_cast<int64_t>(rho.size()) < pairs)
    c.fail("attribute `rho`: expected " + std::to_string(pairs) + ", got " +
           std::to_string(rho.size()));
  if (static_cast<int64_t>(weights.size()) != total * (classes - 1))
    c.fail("attribute `coefficients`: expected " + std::to_string(total * (classes - 1)) +
           ", got " + std::to_string(weights.size()));
  if (classes < 2) c.fail("expected two classes at least, got " + std::to_string(classes));
  if (!prob_a.empty() && classes > 2)
    c.refuse(
        "probabilities of more than two classes (attribute `prob_a`), which are found by "
        "iteration");
  // A row of weights for each pair of classes.
  Floats table(static_cast<size_t>(pairs * total), 0.0);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      for (int64_t k = begins[static_cast<size_t>(i)]; k < begins[static_cast<size_t>(i) + 1]; ++k)
        table[static_cast<size_t>(pair * total + k)] =
            weights[static_cast<size_t>((j - 1) * total + k)];
      for (int64_t k = begins[static_cast<size_t>(j)]; k < begins[static_cast<size_t>(j) + 1]; ++k)
        table[static_cast<size_t>(pair * total + k)] = weights[static_cast<size_t>(i * total + k)];
    }
  const Floats offsets(rho.begin(), rho.begin() + pairs);
  const Tensor scores =
      c.call("linear", {kernel(c, x, vectors_of(c, total, x->shape[1])),
                        known_table(table, {pairs, total}), known_floats(offsets)});
  const std::string transform = c.text("post_transform");
  if (classes == 2) {
    const Tensor column = c.call("squeeze", {scores, Ints{1}});
    const Tensor is_second = c.call("less_equal", {column, 0.0});
    if (!prob_a.empty()) {
      if (prob_a.size() != 1 || prob_b.size() != 1)
        c.fail("expected one of `prob_a` and of `prob_b`");
      if (transform != "NONE") c.refuse("attribute `post_transform` beside probabilities");
      const Tensor second = c.call(
                       "sigmoid",
                       {c.call("add", {c.call("multiply", {scores, prob_a[0]}), prob_b[0]})}),
                   first = c.call("subtract", {1.0, second});
      const Tensor is_likelier = c.call("greater", {c.call("squeeze", {second, Ints{1}}), 0.5});
      return {labels.at(c, c.cast(is_likelier, TENON_DTYPE_I64)),
              c.call("concat", {Values{first, second}, int64_t{1}})};
    }
    if (transform != "NONE") c.refuse("attribute `post_transform` of two classes");
    const Tensor other = c.call("negative", {scores});
    return {labels.at(c, c.cast(is_second, TENON_DTYPE_I64)),
            c.call("concat", {Values{other, scores}, int64_t{1}})};
  }
  // Votes of the pairs: the first class where the score is above 0.
  Floats wins(static_cast<size_t>(pairs * classes), 0.0), losses = wins;
  pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      wins[static_cast<size_t>(i * pairs + pair)] = 1;
      losses[static_cast<size_t>(j * pairs + pair)] = 1;
    }
  const Tensor won = c.cast(c.call("greater", {scores, 0.0}), TENON_DTYPE_F32),
               votes = c.call("add", {c.call("linear", {won, known_table(wins, {classes, pairs})}),
                                      c.call("linear", {c.call("subtract", {1.0, won}),
                                                        known_table(losses, {classes, pairs})})});
  return {labels.at(c, c.call("argmax", {votes, int64_t{1}})),
          post_transformed(c, scores, transform)};
}

}  // namespace tenon::onnx
