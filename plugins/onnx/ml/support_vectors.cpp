// SPDX-License-Identifier: Apache-2.0
// SVMRegressor and SVMClassifier.
#include "convert/converters.hpp"
#include "convert/region.hpp"
#include "ml/scores.hpp"

namespace tenon::onnx {
namespace {

constexpr int64_t kMaxCoupled = 256;  // classes, each with a dozen steps in a round

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

// How likely each class is by how likely it is of each pair, as Wu, Lin and Weng couple them (Probability Estimates for
// Multi-class Classification by Pairwise Coupling, 2004, second method), with the bounds and the end of LIBSVM, from which models
// of this kind come: in float64, at most 100 rounds or as many as there are classes, each row until no class is more than
// 0.005 / classes from where it would rest. `first` [rows, pairs]: of the pair's first class.
Tensor coupled(Conversion& c, const Tensor& first, int64_t classes) {
  constexpr double kMinProbability = 1e-7;
  const int64_t rows = first->shape[0], pairs = classes * (classes - 1) / 2;
  const Tensor bounded = c.call("clip", {first, kMinProbability, 1 - kMinProbability}),
               other = c.call("subtract", {1.0, bounded}),
               zero = c.call("multiply", {c.call("narrow", {bounded, 1, 0, 1}), 0.0}),
               columns = c.call("concat", {Values{bounded, other, zero}, 1});
  // [rows, classes, classes]: how likely the first is of each two.
  Ints indices(static_cast<size_t>(classes * classes), 2 * pairs);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      indices[static_cast<size_t>(i * classes + j)] = pair;
      indices[static_cast<size_t>(j * classes + i)] = pairs + pair;
    }
  const Tensor of_two = c.call(
      "reshape",
      {c.call("index_select", {columns, known_ints(indices), 1}), Ints{rows, classes, classes}});
  const Tensor squares = c.call("sum", {c.call("multiply", {of_two, of_two}), Ints{1}}),
               products = c.call("multiply", {of_two, c.call("permute", {of_two, Ints{0, 2, 1}})});
  const auto unit = [&](int64_t at) {
    Floats row(static_cast<size_t>(classes), 0.0);
    row[static_cast<size_t>(at)] = 1;
    return known_table(row, {1, classes}, TENON_DTYPE_F64);
  };
  Floats diagonal(static_cast<size_t>(classes * classes), 0.0);
  for (int64_t i = 0; i < classes; ++i) diagonal[static_cast<size_t>(i * classes + i)] = 1;
  const Tensor identity = known_table(diagonal, {classes, classes}, TENON_DTYPE_F64);
  const Tensor costs =
      c.call("subtract",
             {c.call("multiply", {identity, c.call("unsqueeze", {squares, Ints{1}})}), products});
  const Tensor begin = c.call("full_like", {squares, 1.0 / static_cast<double>(classes)});
  Values carried{known_int(0), known_truth(true), begin};
  Captures captures({}, c.scope);
  captures.add(costs);
  const auto add_inputs = [&](Region& region) {
    Values inputs;
    for (const Value& value : carried) inputs.emplace_back(region.input(value.tensor("a value")));
    region.capture(captures);
    return inputs;
  };
  OwnedProgram regions[2];
  {
    Region region(c);
    const Values inputs = add_inputs(region);
    const Tensor is_within = c.call("less", {inputs[0], std::max<int64_t>(100, classes)});
    regions[0] = region.finish({c.call("logical_and", {inputs[1], is_within})});
  }
  {
    Region region(c);
    const Values inputs = add_inputs(region);
    const Value q = region.inside(costs);
    Tensor p = inputs[2].tensor("p");
    const auto times = [&](const Tensor& a, const Value& b) { return c.call("multiply", {a, b}); };
    Tensor qp =
        c.call("squeeze", {c.call("matmul", {q, c.call("unsqueeze", {p, Ints{2}})}), Ints{2}});
    Tensor pqp = c.call("sum", {times(p, qp), Ints{1}, true});
    const Tensor apart = c.call("abs", {c.call("subtract", {qp, pqp})}),
                 farthest = c.call("max", {apart, Ints{1}, true}),
                 moves = c.call("greater_equal", {farthest, 0.005 / static_cast<double>(classes)});
    for (int64_t t = 0; t < classes; ++t) {
      const Tensor row = c.call("squeeze", {c.call("narrow", {q, 1, t, 1}), Ints{1}}),
                   own = c.call("narrow", {row, 1, t, 1}), here = c.call("narrow", {qp, 1, t, 1}),
                   step = c.call("divide", {c.call("subtract", {pqp, here}), own}),
                   scale = c.call("add", {step, 1.0}),
                   added = times(step, c.call("add", {times(step, own), times(here, 2.0)}));
      pqp = c.call("divide", {c.call("divide", {c.call("add", {pqp, added}), scale}), scale});
      qp = c.call("divide", {c.call("add", {qp, times(step, row)}), scale});
      p = c.call("divide", {c.call("add", {p, times(step, unit(t))}), scale});
    }
    regions[1] = region.finish({c.call("add", {inputs[0], known_int(1)}), c.call("any", {moves}),
                                c.call("where", {moves, p, inputs[2]})});
  }
  Values operands = carried;
  for (const Tensor& each : captures.operands()) operands.emplace_back(each);
  const Values made =
      c.importer.steps().control(TENON_GRAPH_STEP_WHILE, operands, carried.size(), 0,
                                 {regions[0].get(), regions[1].get()}, carried.size());
  return c.cast(made[2].tensor("probabilities"), TENON_DTYPE_F32);
}

// Of each class, where the model has the coefficients of a sigmoid for each pair.
Tensor probabilities(Conversion& c, const Tensor& scores, const Floats& a, const Floats& b,
                     int64_t classes) {
  const auto pairs = static_cast<size_t>(classes * (classes - 1) / 2);
  if (a.size() != pairs || b.size() != pairs)
    c.fail("expected " + std::to_string(pairs) + " of `prob_a` and of `prob_b`, got " +
           std::to_string(a.size()) + " and " + std::to_string(b.size()));
  if (classes > kMaxCoupled)
    c.refuse("probabilities of more than " + std::to_string(kMaxCoupled) + " classes");
  const auto row = [&](const Floats& numbers) {
    return known_table(numbers, {1, static_cast<int64_t>(pairs)}, TENON_DTYPE_F64);
  };
  const Tensor wide = c.cast(scores, TENON_DTYPE_F64),
               line = c.call("add", {c.call("multiply", {wide, row(a)}), row(b)});
  return coupled(c, c.call("sigmoid", {c.call("negative", {line})}), classes);
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
  if (!prob_a.empty() && transform != "NONE")
    c.refuse("attribute `post_transform` beside probabilities");
  if (classes == 2) {
    const Tensor column = c.call("squeeze", {scores, Ints{1}});
    const Tensor is_second = c.call("less_equal", {column, 0.0});
    if (!prob_a.empty()) {
      const Tensor each = probabilities(c, scores, prob_a, prob_b, classes);
      return {labels.at(c, c.call("argmax", {each, int64_t{1}})), each};
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
          prob_a.empty() ? post_transformed(c, scores, transform)
                         : probabilities(c, scores, prob_a, prob_b, classes)};
}

}  // namespace tenon::onnx
