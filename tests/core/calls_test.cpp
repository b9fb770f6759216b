// SPDX-License-Identifier: Apache-2.0
// The host's service "calls": every function gives what op_call gives, or does nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/services/calls.h>

#include "fake_plugins.hpp"
#include "kernel_core/dispatch/calls.hpp"

namespace {

using namespace tenon::core;
using fake::tensor;
using fake::value;
using fake::values;
using testing::ElementsAre;
using testing::HasSubstr;

tenon_status pass_on(void* self, const tenon_op* op, tenon_value* args, uint32_t nargs,
                     tenon_value* outs, uint32_t nouts, tenon_err* err) {
  return slots::op_call_below(*static_cast<int32_t*>(self), op, args, nargs, outs, nouts, err);
}

// A layer that sees the calls of tensors that carry its bit.
int32_t layer() {
  static int32_t id = -1;
  if (id < 0) {
    tenon_layer_def def{sizeof def, TENON_LAYER_ENABLED, "passing", 50, 0, &id, pass_on};
    id = slots::layer_register(&def, nullptr);
  }
  return id;
}

struct Calls : testing::Test {
  const tenon_calls_api* calls = nullptr;

  void SetUp() override {
    fake::install();
    register_calls_service();
    calls = static_cast<const tenon_calls_api*>(
        slots::service_find(TENON_CALLS_SERVICE, TENON_CALLS_VERSION));
    ASSERT_NE(calls, nullptr);
    ASSERT_GE(layer(), 0);
  }
};

TEST_F(Calls, RegistersOnce) {
  register_calls_service();
  EXPECT_EQ(slots::service_find(TENON_CALLS_SERVICE, TENON_CALLS_VERSION), calls);
  EXPECT_EQ(slots::service_find(TENON_CALLS_SERVICE, TENON_CALLS_VERSION + 1), nullptr);
  EXPECT_EQ(calls->struct_size, sizeof(tenon_calls_api));
}

TEST_F(Calls, CallsOfCompleteArgumentsCompute) {
  auto x = tensor({2}, {1, 2}), y = tensor({2}, {10, 20});
  tenon_value args[2] = {value(x), value(y)}, outs[1] = {};
  ASSERT_EQ(calls->call(find_operator("fake::add"), args, outs, nullptr), TENON_OK);
  TensorRef sum(impl(as_tensor(outs[0])));
  EXPECT_THAT(values(sum.get()), ElementsAre(11, 22));
}

TEST_F(Calls, CallsReportErrors) {
  auto x = tensor({2}, {1, 2}), y = tensor({3}, {1, 2, 3});
  tenon_value args[2] = {value(x), value(y)}, outs[1] = {};
  tenon_err err{}, expected{};
  EXPECT_NE(calls->call(find_operator("fake::add"), args, outs, &err), TENON_OK);
  EXPECT_NE(slots::op_call(find_operator("fake::add"), args, 2, outs, 1, &expected), TENON_OK);
  EXPECT_FALSE(err.text.empty());
  EXPECT_EQ(err.text, expected.text);
}

TEST_F(Calls, PiecesAreRefusedWhereACallIsAWhole) {
  auto x = tensor({2}, {1, 2});
  tenon_value args[2] = {value(x), value(x)};
  // The kernel of fake::add does not broadcast; the others are not elementwise.
  for (const char* name : {"fake::add", "fake::copy", "fake::reversed", "fake::twice"})
    EXPECT_EQ(calls->piecewise(find_operator(name), args), nullptr) << name;
  calls->piecewise_release(nullptr);
}

TEST_F(Calls, ViewsAreThoseOfTheOperator) {
  const tenon_op* op = find_operator("fake::reversed");
  EXPECT_TRUE(calls->may_view(op));
  EXPECT_FALSE(calls->may_view(find_operator("fake::add")));
  auto x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  tenon_value args[1] = {value(x)};
  tenon_tensor* out = nullptr;
  ASSERT_EQ(calls->view(op, args, &out), 1);
  TensorRef view(impl(out));
  EXPECT_EQ(slots::tensor_base(out), x.get());
  EXPECT_THAT(values(out), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(Calls, LayersKeepTheirViewsAndWrites) {
  auto x = tensor({2}, {1, 2});
  slots::tensor_set_layer(x.get(), layer(), 1);
  tenon_value args[1] = {value(x)};
  tenon_tensor* out = nullptr;
  EXPECT_EQ(calls->view(find_operator("fake::reversed"), args, &out), 0);
  out = x.get();
  const int64_t two = 2, stride = 1;
  EXPECT_EQ(calls->view_of(x.get(), TENON_DTYPE_F32, 1, &two, &stride, 0, &out, nullptr), TENON_OK);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(calls->element(x.get(), 0), nullptr);
  slots::tensor_set_layer(x.get(), layer(), 0);
  EXPECT_NE(calls->element(x.get(), 0), nullptr);
}

TEST_F(Calls, ViewsOfKnownShape) {
  auto x = tensor({4}, {1, 2, 3, 4});
  const int64_t two = 2, stride = 2;
  tenon_tensor* out = nullptr;
  ASSERT_EQ(calls->view_of(x.get(), TENON_DTYPE_F32, 1, &two, &stride, 1, &out, nullptr), TENON_OK);
  TensorRef view(impl(out));
  EXPECT_EQ(slots::tensor_base(out), x.get());
  EXPECT_THAT(values(out), ElementsAre(2, 4));
  tenon_err err{};
  EXPECT_EQ(calls->view_of(x.get(), TENON_DTYPE_F32, 1, &two, &stride, 2, &out, &err),
            TENON_OUT_OF_RANGE);
}

TEST_F(Calls, ElementsOfHostMemoryAlone) {
  auto x = tensor({3}, {1, 2, 3}), matrix = tensor({1, 1}, {1});
  *static_cast<float*>(calls->element(x.get(), 1)) = 5;
  EXPECT_THAT(values(x.get()), ElementsAre(1, 5, 3));
  EXPECT_EQ(calls->element(matrix.get(), 0), nullptr);
  auto remote = tensor({3}, {}, fake::remote_device());
  EXPECT_EQ(calls->element(remote.get(), 0), nullptr);
}

TEST_F(Calls, OperatorsThatWereNotDeclaredCreateNothing) {
  const tenon_op* op = find_operator("fake::add");
  EXPECT_FALSE(calls->is_creation(op));
  const int64_t two = 2;
  tenon_tensor* out = nullptr;
  EXPECT_EQ(calls->create(op, 1, &two, &out), 0);
  EXPECT_EQ(out, nullptr);
}

TEST_F(Calls, PluginsDeclareTheirOwnCreationsAlone) {
  tenon_err err{};
  EXPECT_EQ(calls->declare_creation(nullptr, TENON_DTYPE_F32, TENON_CREATION_ZEROS, &err),
            TENON_INVALID_ARGUMENT);
  EXPECT_THAT(err.text, HasSubstr("expected an operator of the plugin that starts, got NULL"));
  tenon_err other{};
  EXPECT_EQ(calls->declare_creation(find_operator("fake::add"), TENON_DTYPE_F32,
                                    TENON_CREATION_ZEROS, &other),
            TENON_INVALID_ARGUMENT);
  EXPECT_THAT(other.text,
              HasSubstr("expected an operator of the plugin that starts, got fake::add"));
}

}  // namespace
