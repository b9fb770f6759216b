// SPDX-License-Identifier: Apache-2.0
// Operators made at run time: shape rule, decomposition and gradient with a `self`, defined anew.
#include <string>

#include "support.hpp"

namespace tenon::test {
namespace {

constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

tenon_status infer(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t, tenon_err*,
                   void*) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  outs[0].kind = TENON_META_NEW;
  outs[0].dtype = x->dtype;
  outs[0].ndim = static_cast<uint8_t>(x->ndim);
  for (int32_t i = 0; i < x->ndim; ++i) outs[0].shape[i] = x->shape[i];
  return TENON_OK;
}

// What a definition's `self` points at: it multiplies by `factor`, and says that its gradient is
// `slope`.
struct Closure {
  double factor, slope;
};

tenon_status decompose(const tenon_value* args, uint32_t, tenon_value* outs, uint32_t, tenon_err*,
                       void* self) {
  Tensor x = Tensor::borrow(static_cast<tenon_tensor*>(args[0].v.p));
  Tensor out = call("multiply", {x, static_cast<Closure*>(self)->factor});
  outs[0] = {TENON_VALUE_TENSOR, 0, {.p = out.release()}};
  return TENON_OK;
}

tenon_status differentiate(const tenon_host*, const tenon_value*, uint32_t, tenon_tensor* const*,
                           tenon_tensor* const* grad_outs, uint32_t, uint64_t,
                           tenon_value* grad_args, tenon_err*, void* self) {
  Tensor dout = Tensor::borrow(grad_outs[0]);
  Tensor dx = call("multiply", {dout, static_cast<Closure*>(self)->slope});
  grad_args[0] = {TENON_VALUE_TENSOR, 0, {.p = dx.release()}};
  return TENON_OK;
}

// `made::scale` while it lives.
class Definition {
 public:
  Definition(const char* schema, uint32_t nparams, Closure& closure) {
    op = {.struct_size = sizeof(tenon_op_def),
          .name = "made::scale",
          .schema = schema,
          .schema_hash = fnv1a(schema),
          .doc = "",
          .params = kParams,
          .nparams = nparams,
          .param_size = sizeof(tenon_param_def),
          .nouts = 1,
          .dtype_mask = uint64_t{1} << TENON_DTYPE_F32,
          .out_names = kResults,
          .self = &closure,
          .infer_self = infer,
          .decompose_self = decompose};
    table = {.struct_size = sizeof(tenon_plugin),
             .revision = TENON_ABI_REVISION,
             .name = "made",
             .version = "1",
             .vendor = "test",
             .ops = &op,
             .nops = 1,
             .op_size = sizeof op,
             .stop = [](tenon_err*) -> tenon_status { return TENON_OK; }};
    Error err;
    err.check(host->plugin_attach(&table, "redefined_test", err));
  }
  ~Definition() {
    Error err;
    EXPECT_EQ(host->plugin_unload("made", err), TENON_OK) << err.text();
  }
  Definition(const Definition&) = delete;

 private:
  static constexpr tenon_param_def kParams[] = {{.name = "x", .kind = TENON_PARAM_TENSOR},
                                                {.name = "unused",
                                                 .kind = TENON_PARAM_INT,
                                                 .flags = TENON_PARAM_FLAG_HAS_DEFAULT,
                                                 .default_value = {TENON_VALUE_INT, 0, {.i = 0}}}};
  static constexpr const char* kResults[] = {"out"};
  tenon_op_def op;
  tenon_plugin table;
};

tenon_grad_rule rule_of(Closure& closure) {
  return {.struct_size = sizeof(tenon_grad_rule),
          .flags = TENON_GRAD_RULE_REPLACE,
          .op = "made::scale",
          .diff_args = 1,
          .self = &closure,
          .backward_self = differentiate};
}

void set_rule(const tenon_grad_rule& rule) {
  Error err;
  err.check(autograd->rule_register(&rule, err));
}

TEST(MadeAtRunTime, DefinitionsAndRulesGetTheirSelfAndMayBeReplaced) {
  static Closure first = {2, 20}, second = {3, 30};  // recorded calls keep their rule for ever
  static const tenon_grad_rule kFirst = rule_of(first), kSecond = rule_of(second);
  Tensor x = parameter({1, 5}), old;
  {
    Definition definition("made::scale(Tensor x) -> Tensor", 1, first);
    set_rule(kFirst);
    old = call("made::scale", {x});
    EXPECT_EQ(values(old), (Values{2, 10}));
  }
  EXPECT_TRUE(fails_with([&] { call("made::scale", {x}); }, "made::scale"));
  Definition definition("made::scale(Tensor x, int unused=0) -> Tensor", 2, second);
  set_rule(kSecond);
  Tensor now = call("made::scale", {x, 1});
  EXPECT_EQ(values(now), (Values{3, 15}));
  backward(sum(now));
  EXPECT_EQ(grad_values(x), (Values{30, 30}));
  backward(sum(old));
  EXPECT_EQ(grad_values(x), (Values{50, 50})) << "what was recorded before keeps its rule";

  static const tenon_grad_rule kNone = {.struct_size = sizeof(tenon_grad_rule),
                                        .flags = TENON_GRAD_RULE_REPLACE,
                                        .op = "made::scale"};
  set_rule(kNone);
  EXPECT_TRUE(fails_with(
      [&] {
        backward(sum(call("made::scale", {x, 1})));
      },
      "[made::scale] has no gradient"));
}

TEST(MadeAtRunTime, RulesNeedABackwardFunctionAndKnownFlags) {
  const char* expected = "a gradient rule needs struct_size, op, known flags and a backward";
  tenon_grad_rule rule = {.struct_size = sizeof(tenon_grad_rule), .op = "made::scale"};
  EXPECT_TRUE(fails_with([&] { set_rule(rule); }, expected));
  rule.flags = 8;
  rule.backward_self = differentiate;
  EXPECT_TRUE(fails_with([&] { set_rule(rule); }, expected));
}

}  // namespace
}  // namespace tenon::test
