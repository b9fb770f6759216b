// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace tenon::test {
namespace {

// A hook that remembers what it saw, and may double it.
struct Watcher {
  std::vector<Values> seen;
  bool doubles = false;
  tenon_status status = TENON_OK;
  int dropped = 0;

  static tenon_status see(void* user, tenon_tensor* gradient, tenon_tensor** replacement,
                          tenon_err* err) {
    auto* self = static_cast<Watcher*>(user);
    self->seen.push_back(values(gradient));
    if (self->status != TENON_OK) return tenon::fail(err, self->status, "the hook is unhappy");
    if (self->doubles) *replacement = call("multiply", {Tensor::borrow(gradient), 2.0}).release();
    return TENON_OK;
  }
  uint64_t watch(const Tensor& tensor) {
    Error err;
    uint64_t id = 0;
    err.check(autograd->hook_add(
        tensor.get(), see, this, [](void* user) { ++static_cast<Watcher*>(user)->dropped; }, &id,
        err));
    return id;
  }
};

TEST(Hooks, OnALeafSeeTheWholeGradientOnce) {
  Watcher watcher{.doubles = true};
  Tensor x = parameter({3});
  watcher.watch(x);
  backward(x * x);
  EXPECT_EQ(watcher.seen, (std::vector<Values>{{6}}));
  EXPECT_EQ(grad_values(x), Values{12});
  backward(x * x);
  EXPECT_EQ(watcher.seen.size(), 2u);
  EXPECT_EQ(grad_values(x), Values{24});
}

TEST(Hooks, OnAResultReplaceWhatFlowsOn) {
  Watcher watcher{.doubles = true}, second;
  Tensor x = parameter({3});
  Tensor y = x * x;
  watcher.watch(y);
  second.watch(y);
  backward(y + y);
  EXPECT_EQ(watcher.seen, (std::vector<Values>{{2}}));
  EXPECT_EQ(second.seen, (std::vector<Values>{{4}}));
  EXPECT_EQ(grad_values(x), Values{24});
}

TEST(Hooks, AreRemovedAndDropped) {
  Watcher watcher;
  Tensor x = parameter({3});
  uint64_t id = watcher.watch(x);
  Error err;
  err.check(autograd->hook_remove(x.get(), id, err));
  EXPECT_EQ(watcher.dropped, 1);
  EXPECT_EQ(autograd->hook_remove(x.get(), id, err), TENON_NOT_FOUND);
  backward(x * x);
  EXPECT_TRUE(watcher.seen.empty());
  watcher.watch(x);
  x = {};
  EXPECT_EQ(watcher.dropped, 2);
}

TEST(Hooks, MayFail) {
  Watcher watcher{.status = TENON_ABORTED};
  Tensor x = parameter({3});
  Tensor y = x * x, z = y * y;
  watcher.watch(y);
  EXPECT_TRUE(
      fails_with([&] { backward(z, TENON_BACKWARD_RETAIN_GRAPH); },
                 "hook on the gradient of a result of [tenon::multiply] > the hook is unhappy"));
  watcher.status = TENON_OK;  // nothing is left over from the failed pass
  backward(z);
  EXPECT_EQ(grad_values(x), Values{108});
}

TEST(Hooks, ReplacementMustFit) {
  Tensor x = parameter({3, 4});
  Tensor y = x * x;
  Error err;
  uint64_t id;
  auto shrink = [](void*, tenon_tensor* gradient, tenon_tensor** replacement,
                   tenon_err*) -> tenon_status {
    *replacement = sum(Tensor::borrow(gradient)).release();
    return TENON_OK;
  };
  err.check(autograd->hook_add(y.get(), shrink, nullptr, nullptr, &id, err));
  EXPECT_TRUE(fails_with([&] { backward(sum(y)); }, "expected a replacement of shape (2,)"));
}

TEST(Hooks, NeedAGradient) {
  Tensor x = vector({1});
  Error err;
  uint64_t id;
  EXPECT_EQ(autograd->hook_add(x.get(), Watcher::see, nullptr, nullptr, &id, err),
            TENON_FAILED_PRECONDITION);
}

TEST(Hooks, RunInGradientsToo) {
  Watcher on_leaf{.doubles = true}, on_result;
  Tensor x = parameter({3});
  Tensor y = x * x;
  on_leaf.watch(x);
  on_result.watch(y);
  EXPECT_EQ(values(gradients(y * y, {x})[0]), Values{216});
  EXPECT_EQ(on_result.seen, (std::vector<Values>{{18}}));
}

TEST(Hooks, MayRunBackwardOfAnotherGraph) {
  static Tensor other;
  other = parameter({5});
  Tensor x = parameter({3});
  Tensor y = x * x;
  Error err;
  uint64_t id;
  auto nested = [](void*, tenon_tensor*, tenon_tensor**, tenon_err*) -> tenon_status {
    int32_t before = autograd->set_enabled(1);
    backward(other * other);
    autograd->set_enabled(before);
    return TENON_OK;
  };
  err.check(autograd->hook_add(y.get(), nested, nullptr, nullptr, &id, err));
  backward(y * y);
  EXPECT_EQ(grad_values(x), Values{108});
  EXPECT_EQ(grad_values(other), Values{10});
  other = {};
}

TEST(RetainGrad, KeepsGradientsOfResults) {
  Tensor x = parameter({3});
  Tensor y = x * x, z = y * y;
  Error err;
  err.check(autograd->retain_grad(y.get(), err));
  EXPECT_EQ(grad(y), nullptr);
  backward(z, TENON_BACKWARD_RETAIN_GRAPH);
  EXPECT_EQ(grad_values(y), Values{18});
  EXPECT_EQ(grad(z), nullptr);
  backward(z);
  EXPECT_EQ(grad_values(y), Values{36});
  EXPECT_EQ(autograd->retain_grad(vector({1}).get(), err), TENON_FAILED_PRECONDITION);
}

TEST(RetainGrad, SeesWhatHooksMadeOfIt) {
  Watcher watcher{.doubles = true};
  Tensor x = parameter({3});
  Tensor y = x * x;
  Error err;
  err.check(autograd->retain_grad(y.get(), err));
  watcher.watch(y);
  backward(y * y);
  EXPECT_EQ(grad_values(y), Values{36});
}

}  // namespace
}  // namespace tenon::test
