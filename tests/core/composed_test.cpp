// SPDX-License-Identifier: Apache-2.0
// Tensors without memory, which a layer composes of others: who is asked, and that nothing reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fake_plugins.hpp"
#include "kernel_core/dispatch/layers.hpp"

namespace {

using namespace tenon::core;
using fake::call;
using fake::tensor;
using fake::value;
using fake::values;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> asked;  // operators that the composing layer was asked about
tenon_status answer = TENON_OK;  // OK: a result of its own; else what it returns
int32_t layer = -1;
bool passes_on = false;

tenon_status compose(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                     tenon_value* outs, uint32_t nouts, tenon_err* err) {
  asked.push_back(op->name);
  if (passes_on) return slots::op_call_below(layer, op, args, nargs, outs, nouts, err);
  if (answer != TENON_OK || !(op->def.flags & TENON_OP_COMPOSITE || op->name == "fake::add"))
    return answer;
  if (outs[0].tag == TENON_VALUE_NONE) outs[0] = tenon::boxed(tensor({1}, {7}).take());
  return TENON_OK;
}

class Composed : public testing::Test {
 protected:
  void SetUp() override {
    fake::install();
    tenon_layer_def def{
        sizeof def, TENON_LAYER_ENABLED | TENON_LAYER_COMPOSITES, "composing", 25, 0, nullptr,
        compose};
    layer = slots::layer_register(&def, nullptr);
    asked.clear();
    answer = TENON_OK;
    passes_on = false;
  }
  TensorRef composed(std::vector<int64_t> shape) {
    tenon_tensor* made = nullptr;
    tenon_err err;
    EXPECT_EQ(slots::tensor_create_composed(fake::host_device(), TENON_DTYPE_F32,
                                            static_cast<int32_t>(shape.size()), shape.data(), layer,
                                            &made, &err),
              TENON_OK)
        << err.text;
    return TensorRef(impl(made));
  }
};

TEST_F(Composed, AHandleWithAShapeAndNoMemory) {
  TensorRef whole = composed({2, 3});
  EXPECT_EQ(whole->flags, TENON_TENSOR_COMPOSED);
  EXPECT_EQ(whole->data, nullptr);
  EXPECT_EQ(whole->numel, 6);
  EXPECT_EQ(whole->device, fake::host_device());
  EXPECT_EQ(slots::tensor_storage_bytes(whole.get()), 0u);
  slots::tensor_bump_version(whole.get());
  EXPECT_EQ(slots::tensor_version(whole.get()), 1u);
}

TEST_F(Composed, WrongArgumentsAreRefused) {
  tenon_tensor* made = nullptr;
  tenon_err err;
  const int64_t shape[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_NE(slots::tensor_create_composed(fake::host_device(), TENON_DTYPE_F32, 2, shape, layer,
                                          &made, &err),
            TENON_OK);
  err = {};
  EXPECT_EQ(slots::tensor_create_composed(fake::host_device(), TENON_DTYPE_F32, 0, nullptr, 7,
                                          &made, &err),
            TENON_INVALID_ARGUMENT);
  EXPECT_THAT(err.text, HasSubstr("expected a registered layer in [0, 8), got 7"));
}

TEST_F(Composed, ItsLayerServesOperatorsAndCompositesWhole) {
  TensorRef whole = composed({2});
  EXPECT_THAT(values(call("fake::add", {value(whole), value(whole)}).tensor.get()), ElementsAre(7));
  EXPECT_THAT(values(call("fake::twice", {value(whole)}).tensor.get()), ElementsAre(7));
  EXPECT_THAT(asked, ElementsAre("fake::add", "fake::twice"));
}

TEST_F(Composed, ADeclinedCompositeIsTakenApart) {
  TensorRef whole = composed({2});
  answer = TENON_LAYER_DECLINED;
  auto result = call("fake::twice",
                     {value(whole)});  // add(x, x), which it declines too: no answer of a layer
  EXPECT_EQ(asked.front(), "fake::twice");
  EXPECT_EQ(asked.back(), "fake::add");
  EXPECT_NE(result.status, TENON_OK);
}

TEST_F(Composed, WhatItsLayerPassesOnIsRefused) {
  TensorRef whole = composed({2});
  passes_on = true;
  auto result = call("fake::add", {value(whole), value(tensor({2}, {1, 2}))});
  EXPECT_EQ(result.status, TENON_UNSUPPORTED);
  EXPECT_THAT(result.text,
              HasSubstr("[fake::add] expected tensors with memory, got one that is "
                        "composed of others, which the layer `composing` would serve"));
}

TEST_F(Composed, NothingReadsItWhereItsLayerIsOff) {
  TensorRef whole = composed({2});
  slots::layer_enable(layer, 0);
  EXPECT_EQ(call("fake::add", {value(whole), value(whole)}).status, TENON_UNSUPPORTED);
  EXPECT_EQ(call("fake::twice", {value(whole)}).status, TENON_UNSUPPORTED);
  TensorRef out = composed({2});
  TensorRef x = tensor({2}, {1, 2});
  EXPECT_EQ(call("fake::add", {value(x), value(x)}, out.get()).status, TENON_UNSUPPORTED);
  slots::layer_enable(layer, 1);
  {
    LayersOff below;
    EXPECT_EQ(call("fake::add", {value(whole), value(whole)}).status, TENON_UNSUPPORTED);
  }
  EXPECT_THAT(asked, ElementsAre());
}

TEST_F(Composed, NoViewsAndNoCopies) {
  TensorRef whole = composed({2}), plain = tensor({2}, {1, 2});
  tenon_tensor* view = nullptr;
  tenon_err err;
  const int64_t shape[] = {2}, strides[] = {1};
  EXPECT_EQ(slots::tensor_view(whole.get(), TENON_DTYPE_F32, 1, shape, strides, 0, &view, &err),
            TENON_UNSUPPORTED);
  EXPECT_THAT(err.text, HasSubstr("got one of shape (2,) that is composed of others"));
  for (bool is_source : {true, false}) {
    tenon_err of_copy;
    tenon_tensor *to = is_source ? plain.get() : whole.get(),
                 *from = is_source ? whole.get() : plain.get();
    EXPECT_EQ(slots::tensor_copy(to, from, &of_copy), TENON_UNSUPPORTED);
    EXPECT_THAT(of_copy.text, HasSubstr("composed of others"));
  }
  tenon_err of_assign;
  EXPECT_EQ(slots::tensor_assign(plain.get(), whole.get(), &of_assign), TENON_UNSUPPORTED);
}

}  // namespace
