// SPDX-License-Identifier: Apache-2.0
// Operators whose traits say `in_place`, and kernels that can write over the argument.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "fake_plugins.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace {

using namespace tenon::core;
using fake::call;
using fake::tensor;
using fake::value;
using fake::values;
using testing::ElementsAre;
using testing::HasSubstr;

bool was_in_place;    // the last call of put_kernel wrote over x
int64_t stride_of_x;  // as the kernel saw it
bool decomposition_fails;

tenon_status infer_like_x(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t,
                          tenon_err*) {
  const tenon_tensor& x = *as_tensor(args[0]);
  outs[0].kind = TENON_META_NEW;
  outs[0].dtype = static_cast<uint8_t>(x.dtype);
  outs[0].ndim = x.ndim;
  std::copy_n(x.shape, x.ndim, outs[0].shape);
  return TENON_OK;
}

// x with its first element replaced by that of y.
tenon_status put_kernel(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                        tenon_err*) {
  const auto *x = as_tensor(args[0]), *y = as_tensor(args[1]);
  auto* out = as_tensor(outs[0]);
  was_in_place = out->data == x->data;
  stride_of_x = x->strides[0];
  if (!was_in_place) std::memcpy(out->data, x->data, static_cast<size_t>(x->numel) * sizeof(float));
  *static_cast<float*>(out->data) = *static_cast<const float*>(y->data);
  return TENON_OK;
}

tenon_status decompose_put(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs,
                           uint32_t, tenon_err* err) {
  if (decomposition_fails) return fail(err, TENON_INVALID_ARGUMENT, "not this time");
  tenon_value both[2] = {args[0], args[1]};
  return slots::op_call(find_operator("in_place::put"), both, 2, outs, 1, err);
}

constexpr tenon_param_def kParams[] = {{"x", TENON_PARAM_TENSOR, 0, {}},
                                       {"y", TENON_PARAM_TENSOR, 0, {}}};

tenon_op_def definition(const char* name, const char* schema, const char* traits,
                        uint32_t flags = 0) {
  tenon_op_def def{};
  def.struct_size = sizeof def;
  def.flags = flags;
  def.name = name;
  def.schema = schema;
  def.schema_hash = std::hash<std::string>{}(schema);
  def.origin = "in_place_test.cpp";
  def.params = kParams;
  def.nparams = 2;
  def.param_size = sizeof *kParams;
  def.nouts = 1;
  def.compute = TENON_COMPUTE_FIRST;
  def.dtype_mask = (1u << TENON_DTYPE_COUNT) - 1;
  if (flags & TENON_OP_COMPOSITE)
    def.decompose = decompose_put;
  else
    def.infer = infer_like_x;
  def.traits = traits;
  return def;
}

tenon_kernel_def kernel(const char* op, uint32_t traits) {
  tenon_kernel_def def{};
  def.struct_size = sizeof def;
  def.op = op;
  def.device = "fakehost";
  def.boxed = put_kernel;
  def.dtype_mask = 1u << TENON_DTYPE_F32;
  def.traits = traits;
  return def;
}

struct InPlace : testing::Test {
  void SetUp() override {
    fake::install();
    static const bool installed = [] {
      static const int owner = 0;
      static const tenon_op_def ops[] = {
          definition("in_place::put", "in_place::put(Tensor x, Tensor y) -> Tensor",
                     "rows: x\nin_place: x\n"),
          definition("in_place::unable", "in_place::unable(Tensor x, Tensor y) -> Tensor",
                     "in_place: x\n"),
          definition("in_place::untold", "in_place::untold(Tensor x, Tensor y) -> Tensor", nullptr),
          definition("in_place::whole", "in_place::whole(Tensor x, Tensor y) -> Tensor",
                     "in_place: x\n", TENON_OP_COMPOSITE),
          definition("in_place::copied", "in_place::copied(Tensor x, Tensor y) -> Tensor",
                     "in_place: by_copy\n", TENON_OP_COMPOSITE)};
      static const tenon_kernel_def kernels[] = {kernel("in_place::put", TENON_KERNEL_IN_PLACE),
                                                 kernel("in_place::unable", 0),
                                                 kernel("in_place::untold", TENON_KERNEL_IN_PLACE)};
      return registry_add({"in_place", "", ops, kernels}, &owner, nullptr) == TENON_OK;
    }();
    ASSERT_TRUE(installed);
    decomposition_fails = false;
  }
};

TEST_F(InPlace, TheKernelWritesOverTheArgument) {
  auto x = tensor({3}, {1, 2, 3}), y = tensor({1}, {9});
  const uint32_t version = slots::tensor_version(x.get());
  auto result = call("in_place::put", {value(x), value(y)}, x.get());
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_TRUE(was_in_place);
  EXPECT_THAT(values(x.get()), ElementsAre(9, 2, 3));
  EXPECT_EQ(slots::tensor_version(x.get()), version + 1);
}

TEST_F(InPlace, OtherOutputsGetACopyOfTheRest) {
  auto x = tensor({3}, {1, 2, 3}), y = tensor({1}, {9}), out = tensor({3}, {0, 0, 0});
  ASSERT_EQ(call("in_place::put", {value(x), value(y)}, out.get()).status, TENON_OK);
  EXPECT_FALSE(was_in_place);
  EXPECT_THAT(values(out.get()), ElementsAre(9, 2, 3));
  EXPECT_THAT(values(x.get()), ElementsAre(1, 2, 3));
}

TEST_F(InPlace, BothMustSaySo) {
  for (const char* op : {"in_place::unable", "in_place::untold"}) {
    auto x = tensor({3}, {1, 2, 3}), y = tensor({1}, {9});
    ASSERT_EQ(call(op, {value(x), value(y)}, x.get()).status, TENON_OK);
    EXPECT_FALSE(was_in_place) << op;
    EXPECT_THAT(values(x.get()), ElementsAre(9, 2, 3));
  }
}

TEST_F(InPlace, StridesAreTheArgumentsOwn) {
  auto whole = tensor({6}, {1, 2, 3, 4, 5, 6}), y = tensor({1}, {9});
  int64_t shape = 3, stride = 2;
  tenon_tensor* view;
  ASSERT_EQ(
      slots::tensor_view_of(whole.get(), TENON_DTYPE_F32, 1, &shape, &stride, 1, &view, nullptr),
      TENON_OK);
  TensorRef x(impl(view));
  ASSERT_EQ(call("in_place::put", {value(x), value(y)}, view).status, TENON_OK);
  EXPECT_TRUE(was_in_place);
  EXPECT_EQ(stride_of_x, 2);
  EXPECT_THAT(values(whole.get()), ElementsAre(1, 9, 3, 4, 5, 6));
  // Where the kernel cannot, it gets dense memory as ever.
  ASSERT_EQ(call("in_place::unable", {value(x), value(y)}, view).status, TENON_OK);
  EXPECT_EQ(stride_of_x, 1);
}

TEST_F(InPlace, AnotherArgumentInTheSameMemoryTakesACopy) {
  auto x = tensor({3}, {1, 2, 3});
  int64_t shape = 1, stride = 1;
  tenon_tensor* view;
  ASSERT_EQ(slots::tensor_view_of(x.get(), TENON_DTYPE_F32, 1, &shape, &stride, 2, &view, nullptr),
            TENON_OK);
  TensorRef y(impl(view));
  ASSERT_EQ(call("in_place::put", {value(x), value(y)}, x.get()).status, TENON_OK);
  EXPECT_FALSE(was_in_place);
  EXPECT_THAT(values(x.get()), ElementsAre(3, 2, 3));
  // Memory that is shared without a common owner is found by its address.
  tenon_tensor* wrapped;
  ASSERT_EQ(
      slots::tensor_wrap(fake::host_device(), TENON_DTYPE_F32, 1, &shape, &stride,
                         static_cast<float*>(x->data) + 1, 0, nullptr, nullptr, &wrapped, nullptr),
      TENON_OK);
  TensorRef z(impl(wrapped));
  ASSERT_EQ(call("in_place::put", {value(x), value(z)}, x.get()).status, TENON_OK);
  EXPECT_FALSE(was_in_place);
  EXPECT_THAT(values(x.get()), ElementsAre(2, 2, 3));
}

TEST_F(InPlace, CompositesPassTheirOutputOn) {
  auto x = tensor({3}, {1, 2, 3}), y = tensor({1}, {9});
  ASSERT_EQ(call("in_place::whole", {value(x), value(y)}, x.get()).status, TENON_OK);
  EXPECT_TRUE(was_in_place);
  EXPECT_THAT(values(x.get()), ElementsAre(9, 2, 3));
  auto z = tensor({3}, {1, 2, 3});
  ASSERT_EQ(call("in_place::copied", {value(z), value(y)}, z.get()).status, TENON_OK);
  EXPECT_FALSE(was_in_place);
  EXPECT_THAT(values(z.get()), ElementsAre(9, 2, 3));
  EXPECT_EQ(slots::tensor_use_count(x.get()), 1u);
  EXPECT_EQ(slots::tensor_use_count(z.get()), 1u);
}

TEST_F(InPlace, CompositesThatFailLeaveTheOutputToItsOwner) {
  auto x = tensor({3}, {1, 2, 3}), y = tensor({1}, {9});
  decomposition_fails = true;
  auto result = call("in_place::whole", {value(x), value(y)}, x.get());
  EXPECT_EQ(result.status, TENON_INVALID_ARGUMENT);
  EXPECT_THAT(values(x.get()), ElementsAre(1, 2, 3));
  EXPECT_EQ(slots::tensor_use_count(x.get()), 1u);
}

TEST_F(InPlace, TheTraitNamesATensor) {
  static const int owner = 0;
  const tenon_op_def wrong = definition(
      "in_place::wrong", "in_place::wrong(Tensor x, Tensor y) -> Tensor", "in_place: z\n");
  tenon_err err;
  EXPECT_EQ(registry_add({"wrong", "", {&wrong, 1}, {}}, &owner, &err), TENON_INVALID_ARGUMENT);
  EXPECT_THAT(err.text, HasSubstr("its traits say `in_place: z`, expected one result and the name "
                                  "of a Tensor parameter"));
}

}  // namespace
