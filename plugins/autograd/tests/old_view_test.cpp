// SPDX-License-Identifier: Apache-2.0
// Views that were taken before their base had a history.
#include "support.hpp"

namespace tenon::test {
namespace {

bool requires_grad(const Tensor& tensor) { return autograd->requires_grad(tensor.get()); }

TEST(OldViews, SeeTheFirstHistoryOfTheirBase) {
  Tensor base = vector({0, 0, 0, 0}), w = parameter({1, 2, 3, 4});
  Tensor view = slice(base, 1, 3);
  EXPECT_FALSE(requires_grad(view));
  call_on(base, "add", {w});
  EXPECT_TRUE(requires_grad(view));
  EXPECT_FALSE(autograd->is_leaf(view.get()));
  EXPECT_STREQ(autograd->grad_fn(view.get()), "view of a base that was written");
  backward(sum(view * view));
  EXPECT_EQ(grad_values(w), (Values{0, 4, 6, 0}));
}

TEST(OldViews, AsTheFirstArgumentOfBackward) {
  Tensor base = vector({0, 0}), w = parameter({1, 2});
  Tensor view = slice(base, 1, 2);
  call_on(base, "add", {w});
  backward(view);
  EXPECT_EQ(grad_values(w), (Values{0, 1}));
}

TEST(OldViews, InAList) {
  Tensor base = vector({0, 0}), w = parameter({1, 2});
  Tensor view = slice(base, 1, 2);
  call_on(base, "add", {w});
  std::vector<tenon_tensor*> parts{view.get(), view.get()};
  backward(sum(call("concat", {parts})));
  EXPECT_EQ(grad_values(w), (Values{0, 2}));
}

TEST(OldViews, OfViews) {
  Tensor base = matrix(2, 3, {0, 0, 0, 0, 0, 0}), w = require(matrix(2, 3, {1, 2, 3, 4, 5, 6}));
  Tensor column = slice(call("transpose", {base}), 1, 2);
  call_on(base, "add", {w});
  backward(sum(column * column));
  EXPECT_EQ(grad_values(w), (Values{0, 4, 0, 0, 10, 0}));
}

TEST(OldViews, AreNoneOnceTheyHaveOtherMemory) {
  Tensor base = vector({0, 0, 0, 0}), w = parameter({1, 2}), other = vector({5, 6});
  Tensor view = slice(base, 1, 3);
  ASSERT_EQ(host->tensor_assign(view.get(), other.get(), nullptr), TENON_OK);
  call_on(view, "add", {w});
  EXPECT_FALSE(requires_grad(base));
  EXPECT_EQ(values(base), (Values{0, 0, 0, 0}));
  EXPECT_EQ(values(other), (Values{6, 8}));
  backward(sum(view * view));
  EXPECT_EQ(grad_values(w), (Values{12, 16}));
}

TEST(OldViews, DoNotFollowABaseThatHasOtherMemory) {
  Tensor base = vector({0, 0, 0, 0}), w = parameter({1, 2, 3, 4}), other = vector({5, 6, 7, 8});
  Tensor view = slice(base, 1, 3);
  ASSERT_EQ(host->tensor_assign(base.get(), other.get(), nullptr), TENON_OK);
  call_on(base, "add", {w});
  EXPECT_TRUE(requires_grad(base));
  EXPECT_FALSE(requires_grad(view));
  EXPECT_EQ(values(view), (Values{0, 0}));
  Tensor part = parameter({1, 2});
  call_on(view, "add", {part});
  backward(sum(view * view));
  EXPECT_EQ(grad_values(part), (Values{2, 4}));
  EXPECT_EQ(values(base), (Values{6, 8, 10, 12}));
}

TEST(OldViews, OfEveryKind) {
  Tensor base = matrix(2, 2, {0, 0, 0, 0}), w = require(matrix(2, 2, {1, 2, 3, 4}));
  std::vector<int64_t> flat{4}, one{1}, wide{3, 2, 2};
  Tensor views[] = {call("view", {base, flat}),     call("permute", {base}),
                    call("unsqueeze", {base, one}), call("select", {base, 0, 1}),
                    call("flip", {base, one}),      call("diagonal", {base}),
                    call("expand", {base, wide})};
  call_on(base, "add", {w});
  Values expected[] = {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {0, 0, 1, 1},
                       {1, 1, 1, 1}, {1, 0, 0, 1}, {3, 3, 3, 3}};
  for (size_t i = 0; i < std::size(views); ++i)
    EXPECT_EQ(values(gradients(sum(views[i]), {w})[0]), expected[i]) << i;
}

TEST(OldViews, MadeWithoutAnOperator) {
  Tensor base = vector({0, 0, 0, 0}), w = parameter({1, 2, 3, 4});
  Tensor every_second = view_of(base, {2}, {2}, 1), first = view_of(every_second, {1}, {1}, 0);
  call_on(base, "add", {w});
  backward(sum(every_second * every_second) + first);
  EXPECT_EQ(grad_values(w), (Values{0, 5, 0, 8}));
}

TEST(OldViews, SeeAWriteThroughAnotherView) {
  Tensor base = vector({1, 1, 1}), w = parameter({5, 6});
  Tensor first = slice(base, 0, 2), second = slice(base, 1, 3);
  call_on(first, "multiply", {w});
  backward(sum(second * second));
  EXPECT_EQ(grad_values(w), (Values{0, 12}));
}

TEST(OldViews, WrittenThemselves) {
  Tensor base = vector({1, 1, 1}), w = parameter({2, 3, 4}), u = parameter({5});
  Tensor view = slice(base, 0, 1);
  call_on(base, "multiply", {w});
  call_on(view, "multiply", {u});
  backward(sum(base * base));  // (w0 u)^2 + w1^2 + w2^2
  EXPECT_EQ(grad_values(w), (Values{100, 6, 8}));
  EXPECT_EQ(grad_values(u), Values{40});
}

TEST(OldViews, SeeEveryFurtherWrite) {
  Tensor base = vector({1, 1}), w = parameter({2, 3});
  Tensor view = slice(base, 1, 2);
  call_on(base, "multiply", {w});
  Tensor before = view + view;  // 2 w1
  call_on(base, "add", {w});
  backward(before + view);
  EXPECT_EQ(grad_values(w), (Values{0, 4}));
}

TEST(OldViews, OfAHistoryThatEndsAndBeginsAnew) {
  Tensor base = vector({1, 1}), w = parameter({2, 3});
  Tensor view = slice(base, 1, 2);
  call_on(base, "multiply", {w});
  EXPECT_TRUE(requires_grad(view * view));
  call_into(base, "full", {std::vector<int64_t>{2}, 4.0});
  EXPECT_FALSE(requires_grad(view * view));
  call_on(base, "multiply", {w});
  backward(view);
  EXPECT_EQ(grad_values(w), (Values{0, 4}));
}

TEST(OldViews, SavedBeforeTheWriteAreStale) {
  Tensor base = vector({1, 1}), w = parameter({2, 3});
  Tensor view = slice(base, 1, 2);
  Tensor product = view * slice(w, 0, 1);
  call_on(base, "multiply", {w});
  EXPECT_TRUE(fails_with([&] { backward(product); }, "was modified in place"));
}

TEST(OldViews, TakenWithoutRecordingStayConstant) {
  Tensor base = vector({0, 0}), w = parameter({1, 2});
  call_on(base, "add", {w});
  Tensor view, operator_view;
  {
    NoGrad off;
    operator_view = slice(base, 0, 1);
    view = view_of(base, {1}, {1}, 0);
  }
  EXPECT_FALSE(requires_grad(operator_view));
  EXPECT_FALSE(requires_grad(view * view));
}

TEST(OldViews, DetachedStayConstant) {
  Tensor base = vector({0, 0}), w = parameter({1, 2});
  Tensor other = detach(slice(base, 0, 1)), stopped = call("stop_gradient", {base});
  call_on(base, "add", {w});
  EXPECT_FALSE(requires_grad(other));
  EXPECT_FALSE(requires_grad(other * other));
  EXPECT_FALSE(requires_grad(stopped * stopped));
  Tensor later = call("stop_gradient", {base});
  EXPECT_FALSE(requires_grad(later * later));
}

TEST(OldViews, DoNotSeeUnrecordedWrites) {
  Tensor base = vector({0, 0}), w = parameter({1, 2});
  Tensor view = slice(base, 0, 1);
  {
    NoGrad off;
    call_on(base, "add", {w});
  }
  EXPECT_FALSE(requires_grad(view));
}

TEST(OldViews, OfATensorThatBecomesALeaf) {
  Tensor base = vector({3, 4});
  Tensor view = slice(base, 1, 2);
  require(base);
  EXPECT_TRUE(fails_with([&] { call_on(view, "add", {1.0}); }, "a view of a leaf tensor"));
  backward(view * view);
  EXPECT_EQ(grad_values(base), (Values{0, 8}));
}

TEST(OldViews, ThatAreLeavesStayLeaves) {
  Tensor memory = vector({1, 2, 3});
  Tensor x = require(slice(memory, 0, 2));
  Tensor part = slice(x, 1, 2);
  {
    NoGrad off;
    call_on(x, "add", {1.0});
  }
  EXPECT_TRUE(autograd->is_leaf(x.get()));
  backward(sum(x * x) + part * part);
  EXPECT_EQ(grad_values(x), (Values{4, 12}));
}

TEST(OldViews, ThatAreLeavesFollowARecordedWriteToTheirBase) {
  Tensor base = vector({0, 0}), w = parameter({1, 2});
  Tensor x = require(slice(base, 0, 1));
  call_on(base, "add", {w});
  backward(x * x);
  EXPECT_EQ(grad_values(w), (Values{2, 0}));
}

TEST(OldViews, AskedForTheirGradient) {
  Tensor base = vector({0, 0}), w = parameter({1, 2});
  Tensor view = slice(base, 0, 1);
  call_on(base, "add", {w});
  Error err;
  err.check(autograd->retain_grad(view.get(), err));
  Tensor loss = sum(view * view);
  EXPECT_EQ(values(gradients(loss, {view}, TENON_BACKWARD_RETAIN_GRAPH)[0]), Values{2});
  backward(loss);
  EXPECT_EQ(grad_values(view), Values{2});
}

TEST(OldViews, SecondDerivative) {
  Tensor base = vector({2, 2}), w = parameter({3, 5});
  Tensor view = slice(base, 1, 2);
  call_on(base, "multiply", {w});
  Tensor dw = gradients(view * view * view, {w}, TENON_BACKWARD_CREATE_GRAPH)[0];  // 24 w1^2
  EXPECT_EQ(values(dw), (Values{0, 600}));
  EXPECT_EQ(values(gradients(sum(dw), {w})[0]), (Values{0, 240}));
}

TEST(OldViews, OfABaseThatIsNotContiguous) {
  Tensor memory = matrix(3, 2, {0, 0, 0, 0, 0, 0});
  Tensor base = detach(call("flip", {call("transpose", {memory}), std::vector<int64_t>{0}}));
  Tensor w = require(matrix(2, 3, {1, 2, 3, 4, 5, 6}));
  Tensor column = call("select", {base, 1, 2});
  call_on(base, "add", {w});
  call_on(slice(base, 1, 2), "multiply", {matrix(1, 3, {10, 10, 10})});
  EXPECT_EQ(values(base), (Values{1, 2, 3, 40, 50, 60}));
  backward(sum(column * column));  // w02^2 + (10 w12)^2
  EXPECT_EQ(grad_values(w), (Values{0, 0, 6, 0, 0, 1200}));
}

TEST(OldViews, OfMetaTensors) {
  int64_t size = 3;
  auto meta = [&] {
    Error err;
    tenon_tensor* made;
    err.check(host->tensor_create(TENON_DEVICE_META, TENON_DTYPE_F32, 1, &size, &made, err));
    return Tensor::adopt(made);
  };
  Tensor x = require(meta());
  Tensor part = slice(x, 1, 3);
  backward(sum(part * part));
  ASSERT_NE(grad(x), nullptr);
  EXPECT_EQ(grad(x)->shape[0], 3);
  EXPECT_EQ(grad(x)->device, TENON_DEVICE_META);
}

TEST(OldViews, KeepNoCycleAliveThroughAnOlderNode) {
  int alive = 0;
  {
    Tensor base = tracked({1, 1}, alive), w = parameter({2, 3});
    Tensor view = slice(base, 0, 1);
    Tensor product = view * slice(w, 0, 1);  // keeps the view, at a lower level than what follows
    call_on(base, "multiply", {w});
    call_on(view, "add", {product});
  }
  EXPECT_EQ(alive, 0);
}

TEST(OldViews, KeepNoCycleAlive) {
  int alive = 0;
  {
    Tensor base = tracked({1, 1}, alive), w = parameter({2, 3});
    Tensor view = slice(base, 0, 1);
    Tensor product = view * slice(w, 0, 1);  // keeps the view
    call_on(slice(base, 1, 2), "add", {product});
    EXPECT_TRUE(requires_grad(view));
    call_on(view, "add", {product});
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace tenon::test
