// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace tenon::test {
namespace {

TEST(Backward, Chain) {
  Tensor x = parameter({2}), y = x;
  for (int i = 0; i < 10; ++i) y = y * x;
  backward(y);
  EXPECT_EQ(values(y), Values{2048});
  EXPECT_EQ(grad_values(x), Values{11 * 1024});
}

TEST(Backward, DiamondSumsBothPaths) {
  Tensor x = parameter({3});
  Tensor left = x * x, right = x + x;
  backward(left * right);  // 2 x^3
  EXPECT_EQ(grad_values(x), Values{54});
}

TEST(Backward, ManyConsumersOfOneResult) {
  Tensor x = parameter({1, 2});
  Tensor y = x * vector({1, 1}), total = y;
  for (int i = 0; i < 9; ++i) total = total + y;
  backward(sum(total));
  EXPECT_EQ(grad_values(x), (Values{10, 10}));
}

TEST(Backward, BroadcastingIsSummed) {
  Tensor row = parameter({1, 2, 3}), scalar = require(sum(vector({2})));
  Tensor table = matrix(2, 3, {1, 2, 3, 4, 5, 6});
  backward(sum(table * row * scalar));
  EXPECT_EQ(grad_values(row), (Values{10, 14, 18}));
  EXPECT_EQ(grad_values(scalar), Values{5 + 2 * 7 + 3 * 9});
  EXPECT_EQ(grad(scalar)->ndim, 0);
}

TEST(Backward, InnerExtentOfOneIsSummed) {
  Tensor column = require(matrix(2, 1, {10, 20}));
  backward(sum(column * matrix(2, 3, {1, 2, 3, 4, 5, 6})));
  EXPECT_EQ(grad_values(column), (Values{6, 15}));
  EXPECT_EQ(grad(column)->ndim, 2);
}

TEST(Backward, PromotionIsCastBack) {
  Tensor narrow = parameter({1, 2}), wide = parameter({3, 4}, TENON_DTYPE_F64);
  Tensor product = narrow * wide;
  EXPECT_EQ(product->dtype, TENON_DTYPE_F64);
  backward(sum(product));
  EXPECT_EQ(grad(narrow)->dtype, TENON_DTYPE_F32);
  EXPECT_EQ(grad(wide)->dtype, TENON_DTYPE_F64);
  EXPECT_EQ(grad_values(narrow), (Values{3, 4}));
}

TEST(Backward, NumbersTakePart) {
  Tensor x = parameter({2, 3});
  backward(sum(call("multiply", {call("add", {x, 1.0}), 5})));
  EXPECT_EQ(grad_values(x), (Values{5, 5}));
}

TEST(Backward, SavedOutputs) {
  Tensor x = parameter({0});
  Tensor y = call("exp", {x});
  Tensor z = y * vector({3});
  y = {};  // what exp saved must not depend on the handle
  backward(z);
  EXPECT_EQ(grad_values(x), Values{3});
}

TEST(Backward, ListArguments) {
  Tensor x = parameter({1, 2}), constant = vector({5}), y = parameter({3});
  std::vector<tenon_tensor*> parts{x.get(), constant.get(), y.get(), x.get()};
  Tensor joined = call("concat", {parts});
  EXPECT_EQ(values(joined), (Values{1, 2, 5, 3, 1, 2}));
  backward(sum(joined * vector({1, 2, 3, 4, 5, 6})));
  EXPECT_EQ(grad_values(x), (Values{6, 8}));
  EXPECT_EQ(grad_values(y), Values{4});
  EXPECT_EQ(grad(constant), nullptr);
}

TEST(Backward, AccumulatesIntoTheSameGrad) {
  Tensor x = parameter({1, 2});
  backward(sum(x * x));
  Tensor held = Tensor::borrow(grad(x));
  backward(sum(x * x));
  EXPECT_EQ(grad(x), held.get());
  EXPECT_EQ(values(held), (Values{4, 8}));
}

TEST(Backward, GradsOfTwoLeavesNeverShareMemory) {
  Tensor x = parameter({1, 2}), y = parameter({3, 4});
  std::vector<int64_t> shape{2, 1};
  Tensor gradient = vector({1, 1});
  backward(call("reshape", {call("reshape", {x, shape}), std::vector<int64_t>{2}}) + y, 0,
           gradient);
  EXPECT_NE(host->tensor_storage(grad(x)), host->tensor_storage(grad(y)));
  EXPECT_NE(host->tensor_storage(grad(x)), host->tensor_storage(gradient.get()));
  EXPECT_NE(host->tensor_storage(grad(y)), host->tensor_storage(gradient.get()));
}

TEST(Backward, OfALeaf) {
  Tensor x = parameter({7});
  backward(x);
  EXPECT_EQ(grad_values(x), Values{1});
}

TEST(Backward, FromSeveralOutputs) {
  Tensor x = parameter({2});
  Tensor outputs[] = {x * x, x + x};
  tenon_tensor* handles[] = {outputs[0].get(), outputs[1].get()};
  Error err;
  err.check(autograd->backward(handles, nullptr, 2, 0, err));
  EXPECT_EQ(grad_values(x), Values{6});
}

TEST(Backward, StartsFromAGivenGradient) {
  Tensor x = parameter({1, 2});
  backward(x * x, 0, vector({10, 100}));
  EXPECT_EQ(grad_values(x), (Values{20, 400}));
}

TEST(Backward, WantsOneNumberOrAGradient) {
  Tensor x = parameter({1, 2});
  EXPECT_TRUE(fails_with([&] { backward(x * x); }, "expected one real number, or a gradient"));
  EXPECT_TRUE(fails_with([&] { backward(x * x, 0, vector({1})); }, "a gradient of its shape (2,)"));
  EXPECT_TRUE(fails_with([&] { backward(vector({1})); }, "outputs[0] does not require grad"));
}

TEST(Backward, SecondTimeNeedsRetainGraph) {
  Tensor x = parameter({3});
  Tensor y = x * x;
  backward(y, TENON_BACKWARD_RETAIN_GRAPH);
  backward(y);
  EXPECT_EQ(grad_values(x), Values{12});
  EXPECT_TRUE(fails_with([&] { backward(y); },
                         "backward through the graph a second time: what [multiply] had saved"));
  Tensor z = x + x;  // saves nothing
  backward(z);
  backward(z);
  EXPECT_EQ(grad_values(x), Values{16});
}

TEST(Recording, OffMeansNoHistory) {
  Tensor x = parameter({1});
  {
    NoGrad off;
    EXPECT_FALSE(autograd->enabled());
    Tensor y = x * x;
    EXPECT_FALSE(autograd->requires_grad(y.get()));
    EXPECT_TRUE(autograd->is_leaf(y.get()));
  }
  EXPECT_TRUE(autograd->enabled());
  Tensor y = x * x;
  EXPECT_TRUE(autograd->requires_grad(y.get()));
  EXPECT_FALSE(autograd->is_leaf(y.get()));
  EXPECT_STREQ(autograd->grad_fn(y.get()), "tenon::multiply");
  EXPECT_EQ(autograd->grad_fn(x.get()), nullptr);
}

TEST(Recording, OnlyFloatingTensorsRequireGrad) {
  Tensor x = vector({1}, TENON_DTYPE_I64);
  EXPECT_TRUE(fails_with([&] { require(x); }, "expected a floating dtype, got int64"));
}

TEST(Recording, ComplexNumbersAreRefusedWhereTheyMatter) {
  Tensor x = parameter({1, 2});
  Tensor z = call("cast", {x, dtype(TENON_DTYPE_C64)});
  EXPECT_TRUE(fails_with([&] { backward(sum(call("real", {call_with_real_rule(z)}))); },
                         "[probe::real_rule] has no gradient for complex tensors"));
}

TEST(Backward, PassesThroughComplexTensors) {
  Tensor x = parameter({1, 2});
  Tensor z = call("cast", {x, dtype(TENON_DTYPE_C64)});
  backward(sum(call("real", {z * z * z})));
  EXPECT_EQ(grad_values(x), (Values{3, 12}));
}

TEST(Recording, OperatorsThatNeverCarryGradients) {
  Tensor x = parameter({1});
  EXPECT_FALSE(autograd->requires_grad(call("heaviside", {x, vector({2})}).get()));
  EXPECT_FALSE(autograd->requires_grad(call("cast", {x, dtype(TENON_DTYPE_I64)}).get()));
}

TEST(Recording, OperatorsWithoutRuleFailWhenReached) {
  Tensor x = parameter({1}), y = parameter({2});
  Tensor opaque = call("probe::opaque", {x});
  EXPECT_TRUE(autograd->requires_grad(opaque.get()));
  EXPECT_TRUE(fails_with([&] { backward(sum(opaque * y)); }, "[probe::opaque] has no gradient"));
  EXPECT_EQ(values(gradients(sum(opaque * y), {y})[0]), Values{1});
}

TEST(Recording, RequiresGradCanBeTurnedOffForLeavesOnly) {
  Tensor x = parameter({2});
  Tensor y = x * x;
  Error err;
  EXPECT_EQ(autograd->set_requires_grad(y.get(), 0, err), TENON_FAILED_PRECONDITION);
  EXPECT_NE(err.text().find("use detach()"), std::string::npos);
  Error none;
  none.check(autograd->set_requires_grad(x.get(), 0, none));
  EXPECT_FALSE(autograd->requires_grad(x.get()));
  backward(y);
  EXPECT_EQ(grad(x), nullptr);
}

TEST(Recording, DetachSharesMemoryAndNothingElse) {
  Tensor x = parameter({2});
  Tensor y = detach(x);
  EXPECT_EQ(y->data, x->data);
  EXPECT_FALSE(autograd->requires_grad(y.get()));
}

TEST(Grad, CanBeSetAndCleared) {
  Tensor x = parameter({1, 2}), gradient = vector({5, 6});
  Error err;
  err.check(autograd->set_grad(x.get(), gradient.get(), err));
  EXPECT_EQ(grad(x), gradient.get());
  err.check(autograd->set_grad(x.get(), nullptr, err));
  EXPECT_EQ(grad(x), nullptr);
  EXPECT_EQ(autograd->set_grad(x.get(), vector({1}).get(), err), TENON_INVALID_ARGUMENT);
}

tenon_status extremes_backward(const tenon_host*, const tenon_value* args, uint32_t,
                               tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t,
                               uint64_t, tenon_value* grad_args, tenon_err*) {
  auto* x = static_cast<tenon_tensor*>(args[0].v.p);
  EXPECT_EQ(x->device, TENON_DEVICE_META);
  Tensor gradient = call("full", {std::vector<int64_t>{x->shape[0]}, 0.0, dtype(x->dtype)});
  for (int k = 0; k < 4; k += 2)
    if (grad_outs[k])
      static_cast<float*>(gradient->data)[*static_cast<int64_t*>(outs[k + 1]->data)] +=
          static_cast<float>(values(grad_outs[k])[0]);
  grad_args[0] = {TENON_VALUE_TENSOR, 0, {.p = gradient.release()}};
  return TENON_OK;
}
constexpr tenon_grad_rule kExtremesRule = {.struct_size = sizeof(tenon_grad_rule),
                                           .op = "probe::extremes",
                                           .diff_args = 1,
                                           .shapes_args = 1,
                                           .saves_outs = 0b1010,
                                           .backward = extremes_backward};

TEST(Rules, ComeFromOutsideTooAndSeeUnreachedResultsAsNull) {
  Error err;
  err.check(autograd->rule_register(&kExtremesRule, err));
  Tensor x = parameter({3, 1, 2});
  std::vector<Tensor> outs = call_all("probe::extremes", {x});
  EXPECT_FALSE(autograd->requires_grad(outs[1].get()));
  EXPECT_TRUE(autograd->requires_grad(outs[2].get()));
  backward(outs[2], TENON_BACKWARD_RETAIN_GRAPH);
  EXPECT_EQ(grad_values(x), (Values{1, 0, 0}));
  backward(outs[0] + outs[2] * outs[2]);
  EXPECT_EQ(grad_values(x), (Values{7, 1, 0}));
}

}  // namespace
}  // namespace tenon::test
