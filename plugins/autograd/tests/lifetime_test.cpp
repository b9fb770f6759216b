// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace tenon::test {
namespace {

TEST(Lifetime, DeepGraphIsReleasedWithoutRecursion) {
  Tensor x = parameter({1}), y = x, one = vector({1});
  for (int i = 0; i < 1'000'000; ++i) y = y * one;
  y = {};
}

TEST(Lifetime, DeepGraphIsDifferentiatedWithoutRecursion) {
  Tensor x = parameter({1}), y = x, one = vector({1});
  for (int i = 0; i < 1'000'000; ++i) y = y * one;
  EXPECT_EQ(values(gradients(y, {x}, TENON_BACKWARD_RETAIN_GRAPH)[0]), Values{1});
  backward(y);
  EXPECT_EQ(grad_values(x), Values{1});
}

TEST(Lifetime, DeepChainOfSavedTensors) {
  // Each node keeps its input alive, each tensor its node.
  Tensor x = parameter({1}), y = x;
  for (int i = 0; i < 200'000; ++i) y = y * y;
  y = {};
}

TEST(Lifetime, BackwardFreesWhatWasSaved) {
  int alive = 0;
  Tensor x = parameter({1}), y;
  y = x * tracked({2}, alive);
  EXPECT_EQ(alive, 1);
  backward(y);
  EXPECT_EQ(alive, 0);
}

TEST(Lifetime, OnlyWhatNeededGradientsReadIsKept) {
  int alive = 0;
  Tensor x = parameter({1});
  Tensor y = tracked({2}, alive) + x;  // add reads no data
  EXPECT_EQ(alive, 0);
  Tensor z = x * require(tracked({2}, alive));
  EXPECT_EQ(alive, 1);
  z = {};
  EXPECT_EQ(alive, 0);
  // multiply reads, for the gradient of one factor, the other.
  Tensor constant = vector({2});
  z = require(tracked({2}, alive)) * constant;
  EXPECT_EQ(alive, 0);
}

TEST(Lifetime, GraphOfACreatedGradientIsFree) {
  int alive = 0;
  {
    Tensor x = require(tracked({2}, alive));
    Tensor first = gradients(x * x * x, {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
  }
  EXPECT_EQ(alive, 0);
}

TEST(Lifetime, InPlaceAfterUseMakesNoCycle) {
  int alive = 0;
  {
    Tensor x = parameter({2}), w = parameter({3});
    Tensor y = tracked({5}, alive);
    call_on(y, "multiply", {x});
    Tensor z = y * w;        // keeps y
    call_on(y, "add", {z});  // y -> add -> multiply -> y, were it kept on
    EXPECT_TRUE(fails_with([&] { backward(y); }, "was modified in place"));
  }
  EXPECT_EQ(alive, 0);
}

TEST(Lifetime, WriteThroughAViewAfterUseMakesNoCycle) {
  int alive = 0;
  {
    Tensor x = parameter({2, 2}), w = parameter({3});
    Tensor y = tracked({5, 6}, alive);
    call_on(y, "multiply", {x});
    Tensor head = slice(y, 0, 1);
    Tensor z = head * w;
    call_into(slice(y, 1, 2), "clone", {z});
  }
  EXPECT_EQ(alive, 0);
}

TEST(Lifetime, ConstantKeptBeforeItTookHistoryMakesNoCycle) {
  int alive = 0;
  {
    Tensor w = parameter({3}), y = tracked({5}, alive);
    Tensor z = y * w;
    call_on(y, "add", {z});
  }
  EXPECT_EQ(alive, 0);
}

TEST(Lifetime, GradDiesWithItsLeaf) {
  int alive = 0;
  Tensor y;
  {
    Tensor x = parameter({3});
    y = x * x;
    Tensor gradient = tracked({1}, alive);
    Error err;
    err.check(autograd->set_grad(x.get(), gradient.get(), err));
  }
  EXPECT_EQ(alive, 1);  // the graph holds x itself: multiply saved it
  backward(y);
  EXPECT_EQ(alive, 0);
}

TEST(Lifetime, LeafThatIsGoneTakesNoGradient) {
  Tensor y;
  {
    Tensor x = parameter({3});
    y = x + x;
  }
  backward(y);
}

TEST(Lifetime, WrittenTensorKeptByAnOlderNode) {
  int alive = 0;
  {
    Tensor x = tracked({1}, alive), w = parameter({2});
    Tensor product = x * w;  // keeps x
    call_on(x, "multiply", {call("exp", {call("exp", {w})})});
    call_on(x, "add", {product});
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace tenon::test
