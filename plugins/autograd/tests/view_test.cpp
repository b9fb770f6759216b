// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace tenon::test {
namespace {

TEST(Views, AreOrdinaryOperators) {
  Tensor x = require(matrix(2, 2, {1, 2, 3, 4}));
  backward(sum(call("transpose", {x}) * matrix(2, 2, {1, 2, 3, 4})));
  EXPECT_EQ(grad_values(x), (Values{1, 3, 2, 4}));
  Tensor y = parameter({1, 2, 3});
  backward(sum(slice(y, 1, 3)));
  EXPECT_EQ(grad_values(y), (Values{0, 1, 1}));
}

TEST(Views, WriteIntoAViewReachesTheBase) {
  Tensor x = parameter({1, 2, 3}), w = parameter({10});
  Tensor y = x * vector({1, 1, 1});
  call_on(slice(y, 0, 1), "multiply", {w});
  EXPECT_EQ(values(y), (Values{10, 2, 3}));
  backward(sum(y * y));
  EXPECT_EQ(grad_values(x), (Values{200, 4, 6}));
  EXPECT_EQ(grad_values(w), Values{20});
}

TEST(Views, AssignmentIntoAConstantBuffer) {
  Tensor buffer = vector({7, 7, 7}), x = parameter({2}), y = parameter({3});
  call_into(slice(buffer, 0, 1), "clone", {x * x});
  call_into(slice(buffer, 2, 3), "clone", {y});
  EXPECT_TRUE(autograd->requires_grad(buffer.get()));
  EXPECT_EQ(values(buffer), (Values{4, 7, 3}));
  backward(sum(buffer * buffer));
  EXPECT_EQ(grad_values(x), Values{2 * 4 * 4});
  EXPECT_EQ(grad_values(y), Values{6});
}

TEST(Views, AssignmentOverwritesWhatWasThere) {
  Tensor x = parameter({1, 2, 3});
  Tensor y = x * x;
  call_into(slice(y, 1, 2), "clone", {vector({0})});
  backward(sum(y));
  EXPECT_EQ(grad_values(x), (Values{2, 0, 6}));
}

TEST(Views, WriteIntoTheBaseReachesTheView) {
  Tensor x = parameter({1, 2, 3}), w = parameter({2, 2, 2});
  Tensor y = x * vector({1, 1, 1});
  Tensor view = slice(y, 1, 3);
  call_on(y, "multiply", {w});
  backward(sum(view));
  EXPECT_EQ(grad_values(x), (Values{0, 2, 2}));
  EXPECT_EQ(grad_values(w), (Values{0, 2, 3}));
}

TEST(Views, WriteIntoOneViewReachesAnother) {
  Tensor x = parameter({1, 2, 3});
  Tensor y = x * vector({1, 1, 1});
  Tensor first = slice(y, 0, 2), second = slice(y, 1, 3);
  call_on(first, "multiply", {vector({5, 5})});
  backward(sum(second));
  EXPECT_EQ(grad_values(x), (Values{0, 5, 1}));
}

TEST(Views, OfATransposedView) {
  Tensor x = require(matrix(2, 2, {1, 2, 3, 4}));
  Tensor y = x * x;
  call_on(slice(call("transpose", {y}), 0, 1), "multiply", {vector({10, 100})});  // first column
  EXPECT_EQ(values(y), (Values{10, 4, 900, 16}));
  backward(sum(y));
  EXPECT_EQ(grad_values(x), (Values{20, 4, 600, 8}));
}

TEST(Views, WritesInALoop) {
  Tensor x = parameter({1, 2, 3, 4}), out = vector({0, 0, 0, 0});
  for (int64_t i = 0; i < 4; ++i) {
    Tensor previous = i ? slice(out, i - 1, i) : vector({1});
    call_into(slice(out, i, i + 1), "clone",
              {call("multiply", {call("clone", {previous}), slice(x, i, i + 1)})});
  }
  EXPECT_EQ(values(out), (Values{1, 2, 6, 24}));
  backward(sum(out));
  EXPECT_EQ(grad_values(x), (Values{33, 16, 10, 6}));
}

TEST(Views, OfALeafAreRefused) {
  Tensor x = parameter({1, 2});
  EXPECT_TRUE(fails_with([&] { call_on(slice(x, 0, 1), "add", {1.0}); },
                         "[add] a view of a leaf tensor that requires grad"));
}

TEST(Views, OfALeafStayGoodAfterAnUpdate) {
  Tensor x = parameter({1, 2});
  Tensor view = slice(x, 0, 1);
  {
    NoGrad off;
    call_on(x, "add", {1.0});
  }
  backward(view * view);
  EXPECT_EQ(grad_values(x), (Values{4, 0}));
}

TEST(Views, ThatOverlapThemselvesOutliveUnrecordedWrites) {
  Tensor x = parameter({1});
  Tensor rows =
      call("expand", {call("view", {x, std::vector<int64_t>{1, 1}}), std::vector<int64_t>{3, 1}});
  {
    NoGrad off;
    call_on(x, "add", {1.0});
  }
  backward(sum(rows * rows));
  EXPECT_EQ(grad_values(x), Values{12});
}

TEST(Views, ThatRepeatElementsFollowRecordedWrites) {
  Tensor x = parameter({1, 2});
  Tensor y = x * x;
  Tensor rows = call("expand", {y, std::vector<int64_t>{3, 2}});
  call_on(y, "multiply", {vector({2, 3})});
  Tensor loss = sum(rows * rows);
  Tensor dx = gradients(loss, {x}, TENON_BACKWARD_CREATE_GRAPH)[0];  // of 12 x0^4 + 27 x1^4
  EXPECT_EQ(values(dx), (Values{48, 864}));
  EXPECT_EQ(values(gradients(sum(dx), {x})[0]), (Values{144, 1296}));
}

TEST(Views, ThatOverlapThemselvesDoNotFollowRecordedWrites) {
  Tensor x = parameter({1, 2, 3});
  Tensor y = x * x;
  Tensor pairs = view_of(y, {2, 2}, {1, 1}, 0);
  call_on(y, "add", {1.0});
  EXPECT_TRUE(fails_with([&] { sum(pairs); }, "some of its elements share memory"));
}

TEST(Views, SecondDerivativeThroughAWrite) {
  Tensor x = parameter({1, 2, 3}), w = parameter({10});
  Tensor y = x * x;
  call_on(slice(y, 0, 1), "multiply", {w});
  Tensor loss = sum(y * y);  // w^2 x0^4 + x1^4 + x2^4
  Tensor dx = gradients(loss, {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_EQ(values(dx), (Values{400, 32, 108}));
  std::vector<Tensor> second = gradients(sum(dx), {x, w});
  EXPECT_EQ(values(second[0]), (Values{1200, 48, 108}));
  EXPECT_EQ(values(second[1]), Values{80});
}

TEST(Views, DetachedMemoryIsNotConnected) {
  Tensor x = parameter({1, 2});
  Tensor y = x * x;
  Tensor other = detach(y);
  call_on(slice(other, 0, 1), "multiply", {parameter({3})});
  EXPECT_TRUE(autograd->requires_grad(other.get()));
  EXPECT_STREQ(autograd->grad_fn(y.get()), "tenon::multiply");
}

}  // namespace
}  // namespace tenon::test
