// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace tenon::test {
namespace {

// y = x^2 and its gradient 2 x dy, as a user would write them.
struct Square {
  tenon_saved* input = nullptr;
  tenon_saved* output = nullptr;
  static inline int alive = 0;

  Square() { ++alive; }
  ~Square() {
    autograd->saved_destroy(input);
    autograd->saved_destroy(output);
    --alive;
  }

  static tenon_status backward(void* user, tenon_tensor* const* grads, uint32_t,
                               tenon_tensor** results, uint32_t, tenon_err* err) {
    auto* self = static_cast<Square*>(user);
    tenon_tensor* handle;
    if (tenon_status status = autograd->saved_unpack(self->input, &handle, err); status != TENON_OK)
      return status;
    Tensor x = Tensor::adopt(handle);
    results[0] = (Tensor::borrow(grads[0]) * call("multiply", {x, 2.0})).release();
    return TENON_OK;
  }

  static Tensor apply(const Tensor& x) {
    auto* self = new Square;
    Tensor y;
    {
      NoGrad off;
      y = x * x;
    }
    Error err;
    err.check(autograd->saved_create(x.get(), 0, &self->input, err));
    tenon_tensor *inputs[] = {x.get()}, *outputs[] = {y.get()};
    err.check(autograd->record(
        "Square", inputs, 1, outputs, 1, backward, self,
        [](void* user) { delete static_cast<Square*>(user); }, err));
    return y;
  }
};

TEST(Custom, ForwardAndBackward) {
  Tensor x = parameter({3, 4});
  Tensor y = Square::apply(x * vector({1, 1}));
  EXPECT_STREQ(autograd->grad_fn(y.get()), "Square");
  backward(sum(y));
  EXPECT_EQ(grad_values(x), (Values{6, 8}));
}

TEST(Custom, IsDroppedWithItsNodeOrWhenItsTensorsAreFreed) {
  EXPECT_EQ(Square::alive, 0);
  Tensor x = parameter({3});
  Tensor y = Square::apply(x);
  EXPECT_EQ(Square::alive, 1);
  y = {};
  EXPECT_EQ(Square::alive, 0);
  y = Square::apply(x);
  backward(y, TENON_BACKWARD_RETAIN_GRAPH);
  EXPECT_EQ(Square::alive, 1);
  backward(y);
  EXPECT_EQ(Square::alive, 0);
  EXPECT_TRUE(fails_with([&] { backward(y); }, "a second time: what [Square] had saved"));
}

TEST(Custom, NothingIsRecordedWithoutGradient) {
  Tensor y = Square::apply(vector({3}));
  EXPECT_FALSE(autograd->requires_grad(y.get()));
  EXPECT_EQ(Square::alive, 0);
  NoGrad off;
  EXPECT_FALSE(autograd->requires_grad(Square::apply(parameter({3})).get()));
}

TEST(Custom, SecondDerivative) {
  Tensor x = parameter({3});
  Tensor first = gradients(Square::apply(x) * x, {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_EQ(values(first), Values{27});
  EXPECT_EQ(values(gradients(first, {x})[0]), Values{18});
}

TEST(Custom, SavedTensorThatChangedIsAnError) {
  Tensor x = parameter({3});
  Tensor y = x * vector({1}), z = Square::apply(y);
  call_on(y, "add", {1.0});
  EXPECT_TRUE(fails_with(
      [&] { backward(z); },
      "gradient of [Square] > gradient of [Square]: a tensor saved for backward was modified"));
}

// y = exp(x), which saves its result.
TEST(Custom, SavedOutputsDifferentiateAgainAndMakeNoCycle) {
  static int alive;
  alive = 0;
  struct Exp {
    tenon_saved* output = nullptr;
    Exp() { ++alive; }
    ~Exp() {
      autograd->saved_destroy(output);
      --alive;
    }
    static tenon_status backward(void* user, tenon_tensor* const* grads, uint32_t,
                                 tenon_tensor** results, uint32_t, tenon_err* err) {
      tenon_tensor* y;
      if (tenon_status status = autograd->saved_unpack(static_cast<Exp*>(user)->output, &y, err);
          status != TENON_OK)
        return status;
      results[0] = (Tensor::borrow(grads[0]) * Tensor::adopt(y)).release();
      return TENON_OK;
    }
  };
  Tensor x = parameter({0});
  {
    Tensor y;
    {
      NoGrad off;
      y = call("exp", {x});
    }
    auto* self = new Exp;
    Error err;
    err.check(autograd->saved_create(y.get(), 1, &self->output, err));
    tenon_tensor *inputs[] = {x.get()}, *outputs[] = {y.get()};
    err.check(autograd->record(
        "Exp", inputs, 1, outputs, 1, Exp::backward, self,
        [](void* user) { delete static_cast<Exp*>(user); }, err));
    Tensor first = gradients(y, {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
    EXPECT_EQ(values(first), Values{1});
    EXPECT_EQ(values(gradients(first + first, {x})[0]), Values{2});
  }
  EXPECT_EQ(alive, 0);
}

tenon_status first_only(void*, tenon_tensor* const* grads, uint32_t noutputs,
                        tenon_tensor** results, uint32_t ninputs, tenon_err* err) {
  if (noutputs != 2 || ninputs != 3 || grads[0] != nullptr)
    return tenon::fail(err, TENON_INTERNAL, "unexpected call");
  results[2] =
      sum(Tensor::borrow(grads[1])).release();  // for a (1,): the engine brings it to that shape
  return TENON_OK;
}

TEST(Custom, SeveralInputsAndOutputs) {
  Tensor x = parameter({1, 2}), constant = vector({0}), y = parameter({5});
  Tensor outputs[] = {vector({1}), vector({1, 2})};
  tenon_tensor* inputs[] = {x.get(), constant.get(), y.get()};
  tenon_tensor* results[] = {outputs[0].get(), outputs[1].get()};
  Error err;
  err.check(autograd->record("Split", inputs, 3, results, 2, first_only, nullptr, nullptr, err));
  EXPECT_TRUE(
      fails_with([&] { backward(sum(outputs[1])); }, "gradient of [Split]: expected shape (1,)"));
}

TEST(Custom, InputThatIsAlsoOutputWasModifiedInPlace) {
  Tensor x = parameter({3});
  Tensor y = x * x;
  {
    NoGrad off;
    call_on(y, "multiply", {2.0});
  }
  tenon_tensor* handles[] = {y.get()};
  auto times_two = [](void*, tenon_tensor* const* grads, uint32_t, tenon_tensor** results, uint32_t,
                      tenon_err*) -> tenon_status {
    results[0] = call("multiply", {Tensor::borrow(grads[0]), 2.0}).release();
    return TENON_OK;
  };
  Error err;
  err.check(autograd->record("Double_", handles, 1, handles, 1, times_two, nullptr, nullptr, err));
  backward(y);
  EXPECT_EQ(grad_values(x), Values{12});

  tenon_tensor* leaf[] = {x.get()};
  EXPECT_EQ(autograd->record("Double_", leaf, 1, leaf, 1, times_two, nullptr, nullptr, err),
            TENON_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace tenon::test
