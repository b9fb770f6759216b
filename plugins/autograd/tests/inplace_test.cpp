// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace tenon::test {
namespace {

TEST(InPlace, LeafThatRequiresGradIsRefusedUntouched) {
  Tensor x = parameter({1});
  EXPECT_TRUE(fails_with([&] { call_on(x, "multiply", {2.0}); },
                         "[multiply] a leaf tensor that requires grad is modified"));
  EXPECT_TRUE(fails_with([&] { call_into(x, "clone", {vector({5})}); },
                         "[clone] a leaf tensor that requires grad"));
  EXPECT_EQ(values(x), Values{1});
  NoGrad off;
  call_on(x, "multiply", {2.0});
  EXPECT_EQ(values(x), Values{2});
}

TEST(InPlace, ResultGetsTheNewHistory) {
  Tensor x = parameter({3});
  Tensor y = x * x;
  call_on(y, "add", {x});
  EXPECT_STREQ(autograd->grad_fn(y.get()), "tenon::add");
  backward(y);
  EXPECT_EQ(grad_values(x), Values{7});
}

TEST(InPlace, OperandThatTheRuleReadsIsCopiedFirst) {
  Tensor x = parameter({3}), w = parameter({5});
  Tensor y = x * x;
  call_on(y, "multiply", {w});
  EXPECT_EQ(values(y), Values{45});
  backward(y);
  EXPECT_EQ(grad_values(x), Values{30});
  EXPECT_EQ(grad_values(w), Values{9});
}

TEST(InPlace, BothOperandsAreTheOutput) {
  Tensor x = parameter({3});
  Tensor y = x + x;
  call_on(y, "multiply", {y});
  backward(y);  // (2x)^2
  EXPECT_EQ(grad_values(x), Values{24});
}

TEST(InPlace, SavedResultOfItself) {
  Tensor x = parameter({0});
  Tensor y = x + x;
  call_on(y, "exp", {});
  backward(y);
  EXPECT_EQ(grad_values(x), Values{2});
}

TEST(InPlace, ConstantTensorTakesHistory) {
  Tensor buffer = vector({1, 1}), x = parameter({2, 3});
  call_on(buffer, "multiply", {x});
  EXPECT_TRUE(autograd->requires_grad(buffer.get()));
  backward(sum(buffer * buffer));
  EXPECT_EQ(grad_values(x), (Values{4, 6}));
}

TEST(InPlace, FillMakesAConstant) {
  Tensor x = parameter({2});
  Tensor y = x * x;
  call_into(y, "full", {std::vector<int64_t>{1}, 4.0});
  EXPECT_FALSE(autograd->requires_grad(y.get()));
  EXPECT_TRUE(autograd->is_leaf(y.get()));
}

TEST(InPlace, CopyReplacesHistory) {
  Tensor x = parameter({2}), z = parameter({5});
  Tensor y = x * x;
  call_into(y, "clone", {z});
  backward(y * y);
  EXPECT_EQ(grad_values(z), Values{10});
  EXPECT_EQ(grad(x), nullptr);
}

TEST(InPlace, OutputWithHistoryIsRefused) {
  Tensor x = parameter({2});
  Tensor y = x * x, z = vector({1});
  EXPECT_TRUE(fails_with(
      [&] {
        call_into(y, "add", {z, z});
      },
      "[add] the output given already has a gradient history"));
  call_into(z, "add", {y, y});
  backward(z);
  EXPECT_EQ(grad_values(x), Values{8});
}

TEST(InPlace, SavedTensorThatChangedIsAnError) {
  Tensor x = parameter({2});
  Tensor y = x + x, z = y * x;
  call_on(y, "add", {1.0});
  EXPECT_TRUE(fails_with([&] { backward(z); },
                         "gradient of [multiply]: argument `x` was modified in place after the "
                         "call: expected version 0, "
                         "found version 1; use the out-of-place form"));
}

TEST(InPlace, SavedResultThatChangedIsAnError) {
  Tensor x = parameter({0});
  Tensor y = call("exp", {x});
  call_on(y, "add", {1.0});
  EXPECT_TRUE(
      fails_with([&] { backward(y); }, "gradient of [exp]: result `out` was modified in place"));
}

TEST(InPlace, SavedTensorThatChangedThroughAViewIsAnError) {
  Tensor x = parameter({1, 2});
  Tensor constant = vector({3, 4}), y = x * constant;
  call_on(slice(constant, 0, 1), "add", {1.0});
  EXPECT_TRUE(fails_with([&] { backward(sum(y)); }, "argument `y` was modified in place"));
}

TEST(InPlace, WritesWithoutRecordingCountToo) {
  Tensor x = parameter({2});
  Tensor y = x * x;
  {
    NoGrad off;
    call_on(x, "add", {1.0});
  }
  EXPECT_TRUE(fails_with([&] { backward(y); }, "was modified in place"));
}

TEST(InPlace, RetainedGradMovesToTheNewValue) {
  Tensor x = parameter({3});
  Tensor y = x * x;
  Error err;
  err.check(autograd->retain_grad(y.get(), err));
  call_on(y, "multiply", {2.0});
  backward(y * y);
  EXPECT_EQ(grad_values(y), Values{36});
}

}  // namespace
}  // namespace tenon::test
