// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace tenon::test {
namespace {

// Hooks that keep a copy, count what they are asked, and may fail.
struct Keeper {
  int packed = 0, unpacked = 0, alive = 0;
  int fails_at = -1;  // the number of the pack that fails
  tenon_saved_hooks hooks = {
      .struct_size = sizeof(tenon_saved_hooks),
      .pack = pack,
      .unpack = unpack,
      .drop = drop,
      .user = this,
  };

  struct Content {
    Keeper& keeper;
    Tensor copy;
  };
  static tenon_status pack(void* user, tenon_tensor* tensor, void** content, tenon_err* err) {
    auto& self = *static_cast<Keeper*>(user);
    EXPECT_FALSE(autograd->enabled());
    EXPECT_FALSE(autograd->requires_grad(tensor));
    if (self.packed++ == self.fails_at) return tenon::fail(err, TENON_ABORTED, "nothing is kept");
    ++self.alive;
    *content = new Content{self, call("clone", {Tensor::borrow(tensor)})};
    return TENON_OK;
  }
  static tenon_status unpack(void* content, tenon_tensor** out, tenon_err*) {
    auto& self = *static_cast<Content*>(content);
    ++self.keeper.unpacked;
    *out = Tensor(self.copy).release();
    return TENON_OK;
  }
  static void drop(void* content) {
    --static_cast<Content*>(content)->keeper.alive;
    delete static_cast<Content*>(content);
  }
};

class With {
 public:
  explicit With(Keeper& keeper) : before_(autograd->set_saved_hooks(&keeper.hooks)) {}
  ~With() { autograd->set_saved_hooks(before_); }

 private:
  const tenon_saved_hooks* before_;
};

TEST(SavedHooks, StandForArgumentsResultsAndLists) {
  Tensor x = parameter({1, 2}), y = parameter({3, 4});
  auto compute = [&] {
    Tensor both = call("concat", {std::vector<tenon_tensor*>{(x * y).get(), x.get()}, 0});
    return sum(call("exp", {both}) * call("exp", {both}));
  };
  std::vector<Tensor> expected = gradients(compute(), {x, y});
  Keeper keeper;
  {
    Tensor result;
    {
      With hooks(keeper);
      result = compute();
    }
    EXPECT_GT(keeper.packed, 4);
    std::vector<Tensor> got = gradients(result, {x, y});
    EXPECT_EQ(values(got[0]), values(expected[0]));
    EXPECT_EQ(values(got[1]), values(expected[1]));
    EXPECT_EQ(keeper.unpacked, keeper.packed);
  }
  EXPECT_EQ(keeper.alive, 0);
}

TEST(SavedHooks, SecondGradientsPassThroughWhatWasUnpacked) {
  Keeper keeper;
  Tensor x = parameter({2});
  Tensor y;
  {
    With hooks(keeper);
    y = x * x * x;
  }
  Tensor first = gradients(y, {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_EQ(values(first), Values{12});
  Tensor second = gradients(first, {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_EQ(values(second), Values{12});
  EXPECT_EQ(values(gradients(second, {x})[0]), Values{6});
}

TEST(SavedHooks, ThatFailLeaveNothingBehind) {
  for (int at : {0, 1}) {
    Keeper keeper{.fails_at = at};
    Tensor x = parameter({2}), y = parameter({3});
    {
      With hooks(keeper);
      EXPECT_TRUE(fails_with([&] { x* y; }, "nothing is kept"));
    }
    EXPECT_EQ(keeper.alive, 0);
    backward(x * y);
    EXPECT_EQ(grad_values(x), Values{3});
  }
}

TEST(HooksAfterAccumulation, SeeTheSumAsSoonAsItIsWhole) {
  struct Watcher {
    Tensor leaf, other;
    std::vector<Values> seen;
    bool other_was_empty = false;
    static tenon_status see(void* user, tenon_tensor* grad, tenon_tensor**, tenon_err*) {
      auto& self = *static_cast<Watcher*>(user);
      self.seen.push_back(values(grad));
      self.other_was_empty = !test::grad(self.other);
      return TENON_OK;
    }
  };
  Tensor early = parameter({2}), late = parameter({3});
  Watcher watcher{late, early, {}, false};
  Error err;
  uint64_t id = 0;
  err.check(
      autograd->hook_add_after_accumulate(late.get(), Watcher::see, &watcher, nullptr, &id, err));
  backward(call("exp", {early}) * late * late);
  ASSERT_EQ(watcher.seen.size(), 1u);
  EXPECT_EQ(watcher.seen[0], grad_values(late));
  EXPECT_TRUE(watcher.other_was_empty);
  err.check(autograd->hook_remove(late.get(), id, err));
  backward(late * late);
  EXPECT_EQ(watcher.seen.size(), 1u);
}

}  // namespace
}  // namespace tenon::test
