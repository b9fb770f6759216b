// SPDX-License-Identifier: Apache-2.0
// Steps of transformers apart from attention: rotations, activations, mixtures of experts.
#include <numbers>
#include <string>

#include "composites/domain.hpp"

namespace tenon::standard_ops {

namespace {

// Or would the host have to?
bool computes_float64(tenon_device_id device) {
  std::string report;
  const auto append = [](void* user, const char* text, uint64_t bytes) {
    static_cast<std::string*>(user)->append(text, bytes);
  };
  const tenon_op* op = host->op_find("tenon::multiply");
  return !op ||
         host->op_explain(op, device, TENON_DTYPE_F64, append, &report, nullptr) != TENON_OK ||
         report.find("\"route\":\"host\"") == std::string::npos;
}

// The fractions of position * frequency / (2 pi), in [-1/2, 1/2]. Both factors are cut into pieces of 12 bits, whose
// products float32 holds exactly, so that whole turns can be taken off before anything is rounded.
Tensor turns_in_float32(Scope& scope, const Tensor& positions,
                        const std::vector<double>& frequencies) {
  constexpr int kPieces = 3;
  const Tensor p = ops::cast(scope, positions, TENON_DTYPE_F32);
  const Tensor high =
      ops::multiply(scope, ops::floor(scope, ops::multiply(scope, p, 0x1p-12)), 0x1p12);
  const Tensor low = ops::subtract(scope, p, high);
  std::vector<double> rest;
  for (double frequency : frequencies) rest.push_back(frequency / (2 * std::numbers::pi));
  const auto less_whole_turns = [&](const Tensor& x) {
    return ops::subtract(scope, x, ops::round(scope, x));
  };
  Tensor turns;
  const auto add = [&](const Tensor& position, const std::vector<double>& factors) {
    if (!scope.ok()) return;
    const Tensor factor = float_tensor(scope, factors, TENON_DTYPE_F32, positions->device);
    const Tensor part = less_whole_turns(ops::multiply(scope, position, factor));
    turns = turns ? less_whole_turns(ops::add(scope, turns, part)) : part;
  };
  for (int i = 0; i < kPieces; ++i) {
    std::vector<double> piece;
    for (double& number : rest) {
      int exponent = 0;
      std::frexp(number, &exponent);
      piece.push_back(std::ldexp(std::trunc(std::ldexp(number, 12 - exponent)), exponent - 12));
      number -= piece.back();
    }
    add(high, piece);
    add(low, piece);
  }
  add(p, rest);
  return turns;
}

}  // namespace

TENON_DECOMPOSE(rotary_tables) {
  Scope scope(err);
  Tensor positions = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int64_t features = int_of(args[1]);
  const double base = float_of(args[2]);
  if (features < 2 || features % 2 != 0 || !(base > 0))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "rotary_tables",
                        "expected an even number of features and a base above 0, got %lld and %g",
                        ll(features), base);
  std::vector<double> frequencies;
  for (int64_t i = 0; i < features / 2; ++i)
    frequencies.push_back(
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(features)));
  positions = ops::unsqueeze(scope, positions, {-1});
  if (scope.ok() && !computes_float64(positions->device)) {
    const Tensor turn = turns_in_float32(scope, positions, frequencies);
    const Tensor angle = ops::multiply(scope, turn, 2 * std::numbers::pi);
    return finish(scope, outs, ops::cos(scope, angle), ops::sin(scope, angle));
  }
  Tensor angle =
      ops::multiply(scope, ops::cast(scope, positions, TENON_DTYPE_F64),
                    float_tensor(scope, frequencies, TENON_DTYPE_F64, positions->device));
  return finish(scope, outs, ops::cast(scope, ops::cos(scope, angle), TENON_DTYPE_F32),
                ops::cast(scope, ops::sin(scope, angle), TENON_DTYPE_F32));
}

TENON_DECOMPOSE(rotary_embedding) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), cos = operand(scope, args[1]), sin = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const int64_t features = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
  const bool fits = features % 2 == 0 && cos->ndim > 0 && sin->ndim > 0 &&
                    cos->shape[cos->ndim - 1] == features / 2 &&
                    sin->shape[sin->ndim - 1] == features / 2;
  if (!fits)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "rotary_embedding",
                        "expected x [..., features] with an even number of features, and cos and "
                        "sin [..., features / 2], got shapes %s, %s and %s",
                        shape_text(*x.get()).c_str(), shape_text(*cos.get()).c_str(),
                        shape_text(*sin.get()).c_str());
  const bool interleaved = bool_of(args[3]);
  Tensor first, second;
  if (interleaved) {
    Shape pairs = sizes_of(x);
    pairs.back() = features / 2;
    pairs.push_back(2);
    Tensor both = ops::reshape(scope, x, pairs);
    first = ops::select(scope, both, -1, 0);
    second = ops::select(scope, both, -1, 1);
  } else {
    first = ops::narrow(scope, x, -1, 0, features / 2);
    second = ops::narrow(scope, x, -1, features / 2, features / 2);
  }
  Tensor turned =
      ops::subtract(scope, ops::multiply(scope, first, cos), ops::multiply(scope, second, sin));
  Tensor other =
      ops::add(scope, ops::multiply(scope, second, cos), ops::multiply(scope, first, sin));
  if (!interleaved) return finish(scope, outs, ops::concat(scope, {turned, other}, -1));
  Tensor pairs = ops::stack(scope, {turned, other}, -1);
  if (!scope.ok()) return scope.status();
  Shape shape = sizes_of(turned);
  shape.back() = features;
  return finish(scope, outs, ops::reshape(scope, pairs, shape));
}

TENON_DECOMPOSE(bias_act) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), bias = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (bias) x = ops::add(scope, x, bias);
  const std::string_view name = text_of(args[2]);
  const bool is_gated = name.ends_with("glu");
  Tensor gate;
  if (is_gated && scope.ok()) {
    if (x->ndim < 1 || x->shape[x->ndim - 1] % 2 != 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "bias_act",
                          "expected a last axis of even length for '%.*s', got shape %s",
                          static_cast<int>(name.size()), name.data(), shape_text(*x.get()).c_str());
    const int64_t half = x->shape[x->ndim - 1] / 2;
    gate = ops::narrow(scope, x, -1, half, half);
    x = ops::narrow(scope, x, -1, 0, half);
  }
  if (name == "relu" || name == "reglu")
    x = ops::relu(scope, x);
  else if (name == "gelu" || name == "geglu")
    x = ops::gelu(scope, x);
  else if (name == "silu" || name == "swiglu")
    x = ops::silu(scope, x);
  else if (name == "sigmoid")
    x = ops::sigmoid(scope, x);
  else if (name == "tanh")
    x = ops::tanh(scope, x);
  else if (name != "identity")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "bias_act",
                        "expected activation 'relu', 'gelu', 'silu', 'sigmoid', 'tanh', "
                        "'identity', 'swiglu', 'geglu' or 'reglu', got '%.*s'",
                        static_cast<int>(name.size()), name.data());
  return finish(scope, outs, gate ? ops::multiply(scope, x, gate) : x);
}

TENON_DECOMPOSE(moe_dispatch) {
  const char* op = "moe_dispatch";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), experts = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int64_t count = int_of(args[2]);
  if (x->ndim != 2 || experts->ndim != 2 || x->shape[0] != experts->shape[0] ||
      experts->shape[1] < 1 || !(shapes::bit(experts->dtype) & shapes::kIntegers) || count < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x [tokens, features], integer experts [tokens, k] and a count of "
                        "at least 1, got shapes %s and %s and %lld",
                        shape_text(*x.get()).c_str(), shape_text(*experts.get()).c_str(),
                        ll(count));
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "experts", experts, 0,
                           static_cast<double>(count - 1), err));
  const int64_t choices = experts->shape[1];
  Tensor flat = ops::cast(scope, ops::reshape(scope, experts, {-1}), TENON_DTYPE_I64);
  Tensor order = ops::argsort(scope, flat, 0);
  Tensor rows = ops::index_select(scope, x, ops::floor_divide(scope, order, choices), 0);
  Tensor sorted = ops::index_select(scope, flat, order, 0), expert = numbers_to(scope, count, x);
  Tensor counts = ops::subtract(scope, ops::searchsorted(scope, sorted, expert, true),
                                ops::searchsorted(scope, sorted, expert));
  return finish(scope, outs, rows, counts, order);
}

// Every expert multiplies all rows, of which its own are taken: shapes do not depend on counts.
TENON_DECOMPOSE(moe_linear) {
  const char* op = "moe_linear";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), counts = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const std::span<tenon_tensor* const> weights = tensors_of(args[1]);
  const int64_t rows = x->shape[0];
  TENON_TRY(
      expect_between(TENON_OUT_OF_RANGE, op, "counts", counts, 0, static_cast<double>(rows), err));
  const Tensor ends = ops::cumsum(scope, as_int64(scope, counts), 0);
  Tensor last = ops::narrow(scope, ends, 0, -1, 1);
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "sum of counts", last, static_cast<double>(rows),
                           static_cast<double>(rows), err));
  const Tensor expert =
      ops::unsqueeze(scope, ops::searchsorted(scope, ends, numbers_to(scope, rows, x), true), {1});
  Tensor out;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tensor weight = Tensor::borrow(weights[i]);
    const Tensor made = is_none(args[3]) ? ops::linear(scope, x, weight)
                                         : ops::linear_blocks(scope, x, weight, text_of(args[3]),
                                                              nullptr, text_of(args[4]));
    const Tensor is_own = ops::equal(scope, expert, static_cast<int64_t>(i));
    out = i == 0 ? made : ops::where(scope, is_own, made, out);
  }
  return finish(scope, outs, out);
}

TENON_DECOMPOSE(moe_combine) {
  Scope scope(err);
  Tensor rows = operand(scope, args[0]), weights = operand(scope, args[1]),
         order = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  if (rows->ndim != 2 || weights->ndim != 2 || order->ndim != 1 ||
      rows->shape[0] != weights->numel || order->shape[0] != weights->numel)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "moe_combine",
                        "expected rows [tokens * k, features], weights [tokens, k] and order "
                        "[tokens * k], got shapes %s, %s and %s",
                        shape_text(*rows.get()).c_str(), shape_text(*weights.get()).c_str(),
                        shape_text(*order.get()).c_str());
  const int64_t tokens = weights->shape[0], choices = std::max<int64_t>(weights->shape[1], 1);
  Tensor weight =
      ops::index_select(scope, ops::reshape(scope, weights, {weights->numel}), order, 0);
  Tensor scaled = ops::multiply(scope, rows, ops::unsqueeze(scope, weight, {1}));
  if (!scope.ok()) return scope.status();
  Tensor zeros = full_with(scope, scaled, Shape{tokens, rows->shape[1]}, 0);
  return finish(scope, outs,
                ops::index_add(scope, zeros, ops::floor_divide(scope, order, choices), scaled, 0));
}

}  // namespace tenon::standard_ops
