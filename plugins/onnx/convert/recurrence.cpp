// SPDX-License-Identifier: Apache-2.0
// LinearAttention and CausalConvWithState: what a decoder keeps from token to token.
#include <cmath>

#include "convert/converters.hpp"
#include "convert/region.hpp"

namespace tenon::onnx {
namespace {

Tensor zeros(Conversion& c, const Ints& shape, int32_t dtype) {
  return c.call("full", {shape, 0.0, {"dtype", Dtype{dtype}}});
}

// [batch, time, heads * size] as [time, batch, heads, size].
Tensor by_time(Conversion& c, const Tensor& packed, int64_t heads, int32_t dtype,
               const std::string& name) {
  if (packed->ndim != 3 || heads < 1 || packed->shape[2] % heads != 0)
    c.fail("`" + name + "`: expected [batch, time, " + std::to_string(heads) +
           " heads * size], got " + describe(*packed.get()));
  const Ints shape = {packed->shape[0], packed->shape[1], heads, packed->shape[2] / heads};
  return c.call("permute", {c.call("reshape", {c.cast(packed, dtype), shape}), Ints{1, 0, 2, 3}});
}

// The rule by which a state changes.
struct Rule {
  bool decays, subtracts;
};

Rule rule_of(Conversion& c) {
  const std::string name = c.text("update_rule");
  if (name != "linear" && name != "gated" && name != "delta" && name != "gated_delta")
    c.fail("attribute `update_rule`: expected linear, gated, delta or gated_delta, got `" + name +
           "`");
  const Rule rule = {name.rfind("gated", 0) == 0, name.find("delta") != std::string::npos};
  if (rule.decays && !c.has("decay")) c.fail("expected input `decay` for the rule " + name);
  if (rule.subtracts && !c.has("beta")) c.fail("expected input `beta` for the rule " + name);
  return rule;
}

}  // namespace

// S = exp(decay) S + k (beta (v - k S)), y = scale q S, for each head and token.
Values convert_linear_attention(Conversion& c) {
  const Rule rule = rule_of(c);
  const Tensor& query = c.tensor("query");
  const int32_t dtype = wide_dtype(query);
  const int64_t heads = c.integer("kv_num_heads"), queries = c.integer("q_num_heads");
  if (heads < 1 || queries % heads != 0)
    c.fail("expected q_num_heads to be a multiple of kv_num_heads, got " + std::to_string(queries) +
           " and " + std::to_string(heads));
  Tensor q = by_time(c, query, queries, dtype, "query");
  const Tensor k = by_time(c, c.tensor("key"), heads, dtype, "key"),
               v = by_time(c, c.tensor("value"), heads, dtype, "value");
  const int64_t time = q->shape[0], batch = q->shape[1], size = q->shape[3], width = v->shape[3];
  double scale = c.number("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(size));
  q = c.call("reshape", {q, Ints{time, batch, heads, queries / heads, size}});
  std::vector<Tensor> scanned = {q, k, v};
  if (rule.decays)
    scanned.push_back(c.call("exp", {by_time(c, c.tensor("decay"), heads, dtype, "decay")}));
  if (rule.subtracts) {
    const Tensor& beta = c.tensor("beta");
    const bool is_shared = beta->ndim == 3 && beta->shape[2] == 1;
    scanned.push_back(by_time(c, beta, is_shared ? 1 : heads, dtype, "beta"));
  }
  const Tensor state = c.has("past_state") ? c.cast(c.tensor("past_state"), dtype)
                                           : zeros(c, {batch, heads, size, width}, dtype);
  OwnedProgram body;
  {
    Region region(c);
    Tensor s = region.input(state);
    std::vector<Tensor> now;
    for (const Tensor& each : scanned) now.push_back(region.element_input(each));
    if (rule.decays) s = c.call("multiply", {s, c.call("unsqueeze", {now[3], Ints{-1}})});
    Tensor change = now[2];
    if (rule.subtracts) {
      const Tensor row = c.call("unsqueeze", {now[1], Ints{-2}});
      const Tensor known = c.call("squeeze", {c.call("matmul", {row, s}), Ints{-2}});
      change = c.call("multiply", {c.call("subtract", {change, known}), now.back()});
    }
    s = c.call("add", {s, c.call("multiply", {c.call("unsqueeze", {now[1], Ints{-1}}),
                                              c.call("unsqueeze", {change, Ints{-2}})})});
    const Tensor y = c.call("multiply", {c.call("matmul", {now[0], s}), scale});
    body = region.finish({s, y});
  }
  Values operands = {state};
  for (const Tensor& each : scanned) operands.emplace_back(each);
  const Values made = c.importer.steps().control(TENON_GRAPH_STEP_SCAN, operands, 1, scanned.size(),
                                                 {body.get()}, 2);
  const Tensor y = c.call("permute", {made[1], Ints{1, 0, 2, 3, 4}});
  const Tensor packed = c.call("reshape", {y, Ints{batch, time, queries * width}});
  const int32_t kept = c.has("past_state") ? c.tensor("past_state")->dtype : query->dtype;
  return {c.cast(packed, query->dtype), c.cast(made[0].tensor("state"), kept)};
}

// A depthwise convolution along the last axis that sees no later element; the state is what the next call has before its input.
Values convert_causal_conv_with_state(Conversion& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  if (input->ndim != 3 || weight->ndim != 3 || weight->shape[1] != 1 ||
      weight->shape[0] != input->shape[1] || weight->shape[2] < 1)
    c.fail("expected input [batch, channels, length] and weight [channels, 1, k], got " +
           describe(*input.get()) + " and " + describe(*weight.get()));
  const int32_t dtype = wide_dtype(input);
  const int64_t channels = input->shape[1], before = weight->shape[2] - 1;
  const Tensor past = c.has("past_state")
                          ? c.cast(c.tensor("past_state"), input->dtype)
                          : zeros(c, {input->shape[0], channels, before}, input->dtype);
  const Tensor all = c.call("concat", {Values{past, input}, 2});
  Value bias;
  if (c.has("bias")) bias = c.cast(c.tensor("bias"), dtype);
  Tensor made =
      c.call("conv1d", {c.cast(all, dtype), c.cast(weight, dtype), bias, {"groups", channels}});
  const std::string activation = c.text("activation");
  if (activation == "silu" || activation == "swish")
    made = c.call("silu", {made});
  else if (activation != "none" && !activation.empty())
    c.fail("attribute `activation`: expected silu, swish or none, got `" + activation + "`");
  const Tensor state = c.call("narrow", {all, 2, all->shape[2] - before, before});
  return {c.cast(made, input->dtype), c.call("contiguous", {state})};
}

}  // namespace tenon::onnx
