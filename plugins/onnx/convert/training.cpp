// SPDX-License-Identifier: Apache-2.0
// The optimizers of ai.onnx.preview.training: one step of each of several tensors.
#include "convert/converters.hpp"

namespace tenon::onnx {
namespace {

// Behind R and T come all tensors, then all gradients, then all of each state.
struct Lists {
  Conversion& c;
  size_t count;
  Tensor rate, steps;

  Lists(Conversion& conversion, size_t kinds) : c(conversion), count(0) {
    const Values& inputs = c.inputs();
    if (inputs.size() < 2 + kinds || (inputs.size() - 2) % kinds != 0)
      c.fail("expected R, T and " + std::to_string(kinds) + " lists of as many tensors each, got " +
             std::to_string(inputs.size()) + " inputs");
    count = (inputs.size() - 2) / kinds;
    rate = inputs[0].tensor("R");
    steps = inputs[1].tensor("T");
  }
  const Tensor& at(size_t kind, size_t index) const {
    return c.inputs()[2 + kind * count + index].tensor("inputs");
  }
};

class Formula {
 public:
  explicit Formula(Conversion& c) : c_(c) {}
  Tensor add(const Value& a, const Value& b) const { return c_.call("add", {a, b}); }
  Tensor sub(const Value& a, const Value& b) const { return c_.call("subtract", {a, b}); }
  Tensor mul(const Value& a, const Value& b) const { return c_.call("multiply", {a, b}); }
  Tensor div(const Value& a, const Value& b) const { return c_.call("divide", {a, b}); }
  Tensor root(const Tensor& a) const { return c_.call("sqrt", {a}); }
  // a where T is above 0, else b.
  Tensor started(const Tensor& steps, const Value& a, const Value& b) const {
    return c_.call("where", {c_.call("greater", {steps, int64_t{0}}), a, b});
  }

 private:
  Conversion& c_;
};

Values joined(std::vector<Values>& lists) {
  Values all;
  for (Values& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// G + norm_coefficient * X
Tensor regularized(Conversion& c, const Lists& lists, size_t i) {
  const Formula f(c);
  return f.add(f.mul(lists.at(0, i), c.number("norm_coefficient")), lists.at(1, i));
}

}  // namespace

Values convert_adagrad(Conversion& c) {
  const Lists lists(c, 3);
  const Formula f(c);
  const Tensor steps = c.cast(lists.steps, lists.rate->dtype);
  const Tensor rate = f.div(lists.rate, f.add(f.mul(steps, c.number("decay_factor")), 1.0));
  std::vector<Values> results(2);
  for (size_t i = 0; i < lists.count; ++i) {
    const Tensor g = regularized(c, lists, i), h = f.add(lists.at(2, i), f.mul(g, g)),
                 adapted = f.add(f.root(h), c.number("epsilon"));
    results[0].emplace_back(f.sub(lists.at(0, i), f.div(f.mul(rate, g), adapted)));
    results[1].emplace_back(h);
  }
  return joined(results);
}

Values convert_adam(Conversion& c) {
  const Lists lists(c, 4);
  const Formula f(c);
  const double alpha = c.number("alpha"), beta = c.number("beta");
  const Tensor steps = c.cast(lists.steps, lists.rate->dtype);
  const auto decay = [&](double base) { return f.sub(1.0, c.call("pow", {base, steps})); };
  const Tensor rate = f.started(
      lists.steps, f.div(f.mul(lists.rate, f.root(decay(beta))), decay(alpha)), lists.rate);
  std::vector<Values> results(3);
  for (size_t i = 0; i < lists.count; ++i) {
    const Tensor g = regularized(c, lists, i),
                 v = f.add(f.mul(lists.at(2, i), alpha), f.mul(g, 1 - alpha)),
                 h = f.add(f.mul(lists.at(3, i), beta), f.mul(f.mul(g, g), 1 - beta)),
                 adapted = f.add(f.root(h), c.number("epsilon")),
                 x = f.sub(lists.at(0, i), f.div(f.mul(rate, v), adapted));
    results[0].emplace_back(f.mul(x, 1 - c.number("norm_coefficient_post")));
    results[1].emplace_back(v);
    results[2].emplace_back(h);
  }
  return joined(results);
}

Values convert_momentum(Conversion& c) {
  const Lists lists(c, 3);
  const Formula f(c);
  const std::string mode = c.text("mode");
  if (mode != "standard" && mode != "nesterov")
    c.fail("attribute `mode`: expected standard or nesterov, got `" + mode + "`");
  const double alpha = c.number("alpha");
  const Tensor beta = c.cast(f.started(lists.steps, c.number("beta"), 1.0), lists.rate->dtype);
  std::vector<Values> results(2);
  for (size_t i = 0; i < lists.count; ++i) {
    const Tensor g = regularized(c, lists, i),
                 v = f.add(f.mul(lists.at(2, i), alpha), f.mul(g, beta)),
                 step = mode == "standard" ? v : f.add(g, f.mul(v, alpha));
    results[0].emplace_back(f.sub(lists.at(0, i), f.mul(lists.rate, step)));
    results[1].emplace_back(v);
  }
  return joined(results);
}

}  // namespace tenon::onnx
