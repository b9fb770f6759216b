// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, a step at a time.
#include <algorithm>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// Part `index` of the last axis, of `features` elements.
Tensor gate(Scope& scope, const Tensor& gates, int64_t index, int64_t features) {
  return ops::narrow(scope, gates, -1, index * features, features);
}

// Steps joined along a new first axis; none make an empty tensor.
Tensor sequence(Scope& scope, const std::vector<Tensor>& steps, const Tensor& like,
                int64_t features) {
  if (steps.empty()) return full_with(scope, like, Shape{0, like->shape[0], features}, 0);
  return ops::stack(scope, steps, 0);
}

// grad * y * (1 - y), where y is a sigmoid.
Tensor through_sigmoid(Scope& scope, const Tensor& grad, const Tensor& y) {
  return ops::sigmoid_grad(scope, grad, y);
}

// grad * (1 - y * y), where y is a tanh.
Tensor through_tanh(Scope& scope, const Tensor& grad, const Tensor& y) {
  return ops::subtract(scope, grad, ops::multiply(scope, grad, ops::square(scope, y)));
}

}  // namespace

TENON_DECOMPOSE(lstm_recurrence) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), weight = operand(scope, args[1]);
  Tensor h = operand(scope, args[2]), c = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  const int64_t features = weight->shape[1];
  const Tensor start = h;
  std::vector<Tensor> out, cells, gates;
  for (int64_t t = 0; t < x->shape[0] && scope.ok(); ++t) {
    Tensor sum = ops::add(scope, ops::select(scope, x, 0, t), ops::linear(scope, h, weight));
    Tensor input = ops::sigmoid(scope, gate(scope, sum, 0, features));
    Tensor forget = ops::sigmoid(scope, gate(scope, sum, 1, features));
    Tensor cell = ops::tanh(scope, gate(scope, sum, 2, features));
    Tensor output = ops::sigmoid(scope, gate(scope, sum, 3, features));
    c = ops::add(scope, ops::multiply(scope, forget, c), ops::multiply(scope, input, cell));
    h = ops::multiply(scope, output, ops::tanh(scope, c));
    out.push_back(h);
    cells.push_back(c);
    gates.push_back(ops::concat(scope, {input, forget, cell, output}, -1));
  }
  return finish(scope, outs, sequence(scope, out, start, features),
                sequence(scope, cells, start, features),
                sequence(scope, gates, start, 4 * features));
}

// The chain rule from the last step to the first.
TENON_DECOMPOSE(lstm_recurrence_input_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), grad_cells = operand(scope, args[1]),
         grad_gates = operand(scope, args[2]);
  Tensor weight = operand(scope, args[3]), c = operand(scope, args[4]);
  Tensor cells = operand(scope, args[5]), gates = operand(scope, args[6]);
  if (!scope.ok()) return scope.status();
  const int64_t steps = cells->shape[0], features = weight->shape[1];
  const auto at = [&](const Tensor& x, int64_t t) { return ops::select(scope, x, 0, t); };

  std::vector<Tensor> dx;
  Tensor dh = full_with(scope, c, shape_of(*c.get()), 0), dc = dh;
  for (int64_t t = steps - 1; t >= 0 && scope.ok(); --t) {
    Tensor all = at(gates, t), direct = at(grad_gates, t);
    Tensor input = gate(scope, all, 0, features), forget = gate(scope, all, 1, features);
    Tensor cell = gate(scope, all, 2, features), output = gate(scope, all, 3, features);
    Tensor before = t > 0 ? at(cells, t - 1) : c, shown = ops::tanh(scope, at(cells, t));
    dh = ops::add(scope, dh, at(grad_out, t));
    dc = ops::add(scope, dc, at(grad_cells, t));
    dc = ops::add(scope, dc, through_tanh(scope, ops::multiply(scope, dh, output), shown));
    const auto gradient = [&](const Tensor& product, int64_t index) {
      return ops::add(scope, product, gate(scope, direct, index, features));
    };
    Tensor dinput = gradient(ops::multiply(scope, dc, cell), 0);
    Tensor dforget = gradient(ops::multiply(scope, dc, before), 1);
    Tensor dcell = gradient(ops::multiply(scope, dc, input), 2);
    Tensor doutput = gradient(ops::multiply(scope, dh, shown), 3);
    Tensor dsum =
        ops::concat(scope,
                    {through_sigmoid(scope, dinput, input), through_sigmoid(scope, dforget, forget),
                     through_tanh(scope, dcell, cell), through_sigmoid(scope, doutput, output)},
                    -1);
    dc = ops::multiply(scope, dc, forget);
    dh = ops::matmul(scope, dsum, weight);
    dx.push_back(dsum);
  }
  std::reverse(dx.begin(), dx.end());
  return finish(scope, outs, sequence(scope, dx, c, 4 * features), dh, dc);
}

// The results of lstm_recurrence are arguments here, so that a second derivative goes through them.
TENON_DECOMPOSE(lstm_recurrence_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), grad_cells = operand(scope, args[1]),
         grad_gates = operand(scope, args[2]);
  Tensor weight = operand(scope, args[3]), h = operand(scope, args[4]), c = operand(scope, args[5]);
  Tensor out = operand(scope, args[6]), cells = operand(scope, args[7]),
         gates = operand(scope, args[8]);
  if (!scope.ok()) return scope.status();
  const int64_t steps = out->shape[0], items = steps * out->shape[1], features = weight->shape[1];
  auto [dx, dh, dc] = ops::lstm_recurrence_input_grad(scope, grad_out, grad_cells, grad_gates,
                                                      weight, c, cells, gates);
  if (steps == 0) {
    Tensor none = full_with(scope, weight, shape_of(*weight.get()), 0);
    return finish(scope, outs, dx, none, dh, dc);
  }
  // What each step's sums were multiplied with: the state before it.
  Tensor before = ops::unsqueeze(scope, h, {0});
  if (steps > 1) before = ops::concat(scope, {before, ops::narrow(scope, out, 0, 0, steps - 1)}, 0);
  Tensor sums = ops::reshape(scope, dx, {items, 4 * features});
  Tensor dweight = ops::matmul(scope, ops::transpose(scope, sums),
                               ops::reshape(scope, before, {items, features}));
  return finish(scope, outs, dx, dweight, dh, dc);
}

TENON_DECOMPOSE(gru_recurrence) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), weight = operand(scope, args[1]),
         bias = operand(scope, args[2]);
  Tensor h = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  const int64_t features = weight->shape[1];
  const Tensor start = h;
  std::vector<Tensor> out, gates;
  for (int64_t t = 0; t < x->shape[0] && scope.ok(); ++t) {
    Tensor given = ops::select(scope, x, 0, t), before = ops::linear(scope, h, weight, bias);
    const auto opened = [&](int64_t index) {
      return ops::sigmoid(scope, ops::add(scope, gate(scope, given, index, features),
                                          gate(scope, before, index, features)));
    };
    Tensor reset = opened(0), update = opened(1), added = gate(scope, before, 2, features);
    Tensor fresh = ops::tanh(scope, ops::add(scope, gate(scope, given, 2, features),
                                             ops::multiply(scope, reset, added)));
    h = ops::add(scope, fresh, ops::multiply(scope, update, ops::subtract(scope, h, fresh)));
    out.push_back(h);
    gates.push_back(ops::concat(scope, {reset, update, fresh, added}, -1));
  }
  return finish(scope, outs, sequence(scope, out, start, features),
                sequence(scope, gates, start, 4 * features));
}

// The chain rule from the last step to the first.
TENON_DECOMPOSE(gru_recurrence_input_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), grad_gates = operand(scope, args[1]),
         weight = operand(scope, args[2]);
  Tensor h = operand(scope, args[3]), out = operand(scope, args[4]),
         gates = operand(scope, args[5]);
  if (!scope.ok()) return scope.status();
  const int64_t steps = out->shape[0], features = weight->shape[1];
  const auto at = [&](const Tensor& x, int64_t t) { return ops::select(scope, x, 0, t); };

  std::vector<Tensor> dx, dsums;
  Tensor dh = full_with(scope, h, shape_of(*h.get()), 0);
  for (int64_t t = steps - 1; t >= 0 && scope.ok(); --t) {
    Tensor all = at(gates, t), direct = at(grad_gates, t), before = t > 0 ? at(out, t - 1) : h;
    Tensor reset = gate(scope, all, 0, features), update = gate(scope, all, 1, features);
    Tensor fresh = gate(scope, all, 2, features), added = gate(scope, all, 3, features);
    dh = ops::add(scope, dh, at(grad_out, t));
    const auto gradient = [&](const Tensor& product, int64_t index) {
      return ops::add(scope, product, gate(scope, direct, index, features));
    };
    Tensor kept = ops::multiply(scope, dh, update);
    Tensor dfresh = through_tanh(scope, gradient(ops::subtract(scope, dh, kept), 2), fresh);
    Tensor dupdate = gradient(ops::multiply(scope, dh, ops::subtract(scope, before, fresh)), 1);
    Tensor dreset = gradient(ops::multiply(scope, dfresh, added), 0);
    Tensor dadded = gradient(ops::multiply(scope, dfresh, reset), 3);
    dreset = through_sigmoid(scope, dreset, reset);
    dupdate = through_sigmoid(scope, dupdate, update);
    dx.push_back(ops::concat(scope, {dreset, dupdate, dfresh}, -1));
    dsums.push_back(ops::concat(scope, {dreset, dupdate, dadded}, -1));
    if (scope.ok()) dh = ops::add(scope, kept, ops::matmul(scope, dsums.back(), weight));
  }
  std::reverse(dx.begin(), dx.end());
  std::reverse(dsums.begin(), dsums.end());
  return finish(scope, outs, sequence(scope, dx, h, 3 * features),
                sequence(scope, dsums, h, 3 * features), dh);
}

// The results of gru_recurrence are arguments here, so that a second derivative goes through them.
TENON_DECOMPOSE(gru_recurrence_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), grad_gates = operand(scope, args[1]),
         weight = operand(scope, args[2]);
  Tensor h = operand(scope, args[3]), out = operand(scope, args[4]),
         gates = operand(scope, args[5]);
  if (!scope.ok()) return scope.status();
  const int64_t steps = out->shape[0], items = steps * out->shape[1], features = weight->shape[1];
  auto [dx, dsums, dh] =
      ops::gru_recurrence_input_grad(scope, grad_out, grad_gates, weight, h, out, gates);
  if (steps == 0) {
    Tensor none = full_with(scope, weight, shape_of(*weight.get()), 0);
    return finish(scope, outs, dx, none, full_with(scope, weight, Shape{3 * features}, 0), dh);
  }
  Tensor before = ops::unsqueeze(scope, h, {0});
  if (steps > 1) before = ops::concat(scope, {before, ops::narrow(scope, out, 0, 0, steps - 1)}, 0);
  Tensor sums = ops::reshape(scope, dsums, {items, 3 * features});
  Tensor dweight = ops::matmul(scope, ops::transpose(scope, sums),
                               ops::reshape(scope, before, {items, features}));
  return finish(scope, outs, dx, dweight, ops::sum(scope, sums, {0}), dh);
}

}  // namespace tenon::standard_ops
