// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace tenon::test {
namespace {

TEST(Gradients, LeaveGradAlone) {
  Tensor x = parameter({2}), y = parameter({3});
  std::vector<Tensor> found = gradients(x * y * y, {x, y});
  EXPECT_EQ(values(found[0]), Values{9});
  EXPECT_EQ(values(found[1]), Values{12});
  EXPECT_EQ(grad(x), nullptr);
  EXPECT_EQ(grad(y), nullptr);
}

TEST(Gradients, OfResultsInTheMiddle) {
  Tensor x = parameter({2});
  Tensor y = x * x, z = y * y;
  std::vector<Tensor> found = gradients(z, {y, x, z, y});
  EXPECT_EQ(values(found[0]), Values{8});
  EXPECT_EQ(values(found[1]), Values{32});
  EXPECT_EQ(values(found[2]), Values{1});
  EXPECT_EQ(values(found[3]), Values{8});
}

TEST(Gradients, WalkOnlyWhatLeadsToTheInputs) {
  Tensor x = parameter({2}), w = parameter({3});
  Tensor y = x * x;
  Tensor z = y * call("probe::opaque", {w});  // its gradient would fail
  EXPECT_EQ(values(gradients(z, {y}, TENON_BACKWARD_RETAIN_GRAPH)[0]), Values{3});
  EXPECT_EQ(values(gradients(z, {x})[0]), Values{12});
  EXPECT_TRUE(
      fails_with([&] { gradients(y * y, {x}); }, "a second time"));  // y's node ran just now
}

// A gradient that is left out because one path cannot be differentiated would be a wrong one.
TEST(Gradients, FailWhereAPathHasNoRule) {
  Tensor x = parameter({2});
  const char* no_rule = "[probe::opaque] has no gradient";
  for (uint32_t flags : {0u, uint32_t{TENON_BACKWARD_ALLOW_UNUSED}}) {
    EXPECT_TRUE(
        fails_with([&] { gradients(x * x + call("probe::opaque", {x}), {x}, flags); }, no_rule));
    EXPECT_TRUE(
        fails_with([&] { gradients(call("probe::opaque", {x * x}), {x}, flags); }, no_rule));
    EXPECT_TRUE(fails_with(
        [&] {
          Tensor inner = call("probe::opaque", {x});
          gradients(call("exp", {call("probe::opaque", {inner})}) + x, {x}, flags);
        },
        no_rule));
  }
  Tensor written = vector({0}), in_place = x * x;
  call_into(written, "probe::opaque", {x});
  call_on(in_place, "probe::opaque", {});
  EXPECT_TRUE(fails_with([&] { gradients(in_place + x, {x}); }, no_rule));
  EXPECT_TRUE(fails_with([&] { gradients(written + x, {x}); }, no_rule));
}

TEST(Gradients, PassByWhatHasNoRuleAndNoPartInThem) {
  Tensor x = parameter({2}), w = parameter({3});
  Tensor opaque = call("probe::opaque", {x * w});
  EXPECT_EQ(values(gradients(opaque * opaque, {opaque})[0]), Values{12});
  EXPECT_EQ(values(gradients(x * x + detach(opaque), {x})[0]), Values{4});
  // A comparison has no gradient on purpose.
  Tensor larger = call("cast", {call("less", {w, opaque}), dtype(TENON_DTYPE_F32)});
  EXPECT_EQ(values(gradients(x * x * larger, {x})[0]), Values{4});
  Tensor unused = call("probe::opaque", {w});
  EXPECT_FALSE(gradients(x * x, {w}, TENON_BACKWARD_ALLOW_UNUSED)[0]);
  EXPECT_TRUE(fails_with([&] { gradients(x * x, {w}); }, "the outputs do not depend on inputs[0]"));
}

TEST(Gradients, FailWhereAPathIsComplex) {
  Tensor x = parameter({2, 3});
  Tensor z = call("cast", {x, dtype(TENON_DTYPE_C64)});
  for (const char* part : {"real", "imag", "abs"}) {
    Tensor y = sum(call(part, {call_with_real_rule(z)}));
    for (uint32_t more : {0u, uint32_t{TENON_BACKWARD_ALLOW_UNUSED}}) {
      uint32_t flags = more | TENON_BACKWARD_RETAIN_GRAPH;
      EXPECT_TRUE(fails_with([&] { gradients(y + sum(x), {x}, flags); },
                             "has no gradient for complex tensors"));
      EXPECT_TRUE(
          fails_with([&] { gradients(y, {x}, flags); }, "has no gradient for complex tensors"));
    }
    EXPECT_TRUE(fails_with([&] { backward(y); }, "has no gradient for complex tensors"));
  }
}

TEST(Gradients, StopAtTheInput) {
  Tensor x = parameter({2});
  Tensor y = x * x;
  gradients(y * y, {y});
  backward(y);  // nothing below y was freed
  EXPECT_EQ(grad_values(x), Values{4});
}

TEST(Gradients, UnusedInputs) {
  Tensor x = parameter({2}), y = parameter({3});
  EXPECT_TRUE(fails_with(
      [&] {
        gradients(x * x, {x, y});
      },
      "the outputs do not depend on inputs[1]"));
  std::vector<Tensor> found = gradients(x * x, {x, y}, TENON_BACKWARD_ALLOW_UNUSED);
  EXPECT_EQ(values(found[0]), Values{4});
  EXPECT_FALSE(found[1]);
  EXPECT_TRUE(
      fails_with([&] { gradients(x * x, {vector({1})}); }, "inputs[0] does not require grad"));
}

TEST(Gradients, SecondDerivatives) {
  Tensor x = parameter({2, 3});
  Tensor y = x * x * x;
  Tensor first = gradients(sum(y), {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_EQ(values(first), (Values{12, 27}));
  Tensor second = gradients(sum(first), {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_EQ(values(second), (Values{12, 18}));
  EXPECT_EQ(values(gradients(sum(second), {x})[0]), (Values{6, 6}));
}

TEST(Gradients, SecondDerivativeThroughASavedResult) {
  Tensor x = parameter({0, 0});
  Tensor y = call("exp", {x + x});
  Tensor first = gradients(sum(y), {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_EQ(values(first), (Values{2, 2}));
  EXPECT_EQ(values(gradients(sum(first), {x})[0]), (Values{4, 4}));
}

TEST(Gradients, SecondDerivativeThroughAnInPlaceCopy) {
  Tensor x = parameter({3}), w = parameter({5});
  Tensor y = x * x;
  call_on(y, "multiply", {w});
  Tensor first = gradients(y, {w}, TENON_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_EQ(values(first), Values{9});
  EXPECT_EQ(values(gradients(first, {x})[0]), Values{6});
}

TEST(Gradients, SecondDerivativeThroughBroadcastingAndCast) {
  Tensor x = parameter({2}), y = parameter({1, 2, 3}, TENON_DTYPE_F64);
  Tensor loss = sum(x * y * x);
  Tensor first = gradients(loss, {x}, TENON_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_EQ(values(first), Values{24});
  EXPECT_EQ(values(gradients(first, {y})[0]), (Values{4, 4, 4}));
}

TEST(Gradients, OfBackwardWithCreateGraph) {
  Tensor x = parameter({3});
  backward(x * x, TENON_BACKWARD_CREATE_GRAPH);
  Tensor first = Tensor::borrow(grad(x));
  EXPECT_TRUE(autograd->requires_grad(first.get()));
  EXPECT_EQ(values(gradients(first * first, {x})[0]), Values{24});
  Error err;
  err.check(autograd->set_grad(x.get(), nullptr, err));
}

TEST(Gradients, GradNeverIsTheGradientThatBackwardStartedFrom) {
  Tensor x = parameter({1, 2}), start = vector({3, 4});
  backward(x, TENON_BACKWARD_CREATE_GRAPH, start);
  backward(x, 0, start);
  EXPECT_EQ(values(start), (Values{3, 4}));
  EXPECT_EQ(grad_values(x), (Values{6, 8}));
}

TEST(Gradients, WithoutCreateGraphHaveNoHistory) {
  Tensor x = parameter({3}), start = parameter({1});
  Tensor first = gradients(x + x, {x}, 0, start * start)[0];
  EXPECT_FALSE(autograd->requires_grad(first.get()));
  Tensor z = x + vector({0});
  EXPECT_FALSE(autograd->requires_grad(gradients(z, {x}, 0, start)[0].get()));
}

}  // namespace
}  // namespace tenon::test
