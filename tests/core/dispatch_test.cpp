// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fake_plugins.hpp"
#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/runtime/tensor_extension.hpp"
#include "kernel_core/types/owner.hpp"

namespace {

using namespace tenon::core;
using fake::call;
using fake::number;
using fake::tensor;
using fake::value;
using fake::values;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct Dispatch : testing::Test {
  void SetUp() override {
    fake::install();
    fake::kernels_fail = false;
    slots::fallback_set_policy("allow", nullptr);
  }
};

TEST_F(Dispatch, AddsAndAllocatesTheResult) {
  auto x = tensor({2}, {1, 2}), y = tensor({2}, {10, 20});
  auto result = call("fake::add", {value(x), value(y)});
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_THAT(values(result.tensor.get()), ElementsAre(11, 22));
}

TEST_F(Dispatch, BroadcastsForKernelsThatCannot) {
  auto x = tensor({2, 1}, {1, 2}), y = tensor({3}, {10, 20, 30});
  auto result = call("fake::add", {value(x), value(y)});
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_THAT(values(result.tensor.get()), ElementsAre(11, 21, 31, 12, 22, 32));
}

TEST_F(Dispatch, NumbersAreWeak) {
  auto x = tensor({2}, {1, 2});
  auto result = call("fake::add", {value(x), number(0.5)});
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_EQ(result.tensor->dtype, TENON_DTYPE_F32);
  EXPECT_THAT(values(result.tensor.get()), ElementsAre(1.5f, 2.5f));
  result = call("fake::add", {number(1), value(x)});
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_THAT(values(result.tensor.get()), ElementsAre(2, 3));
}

TEST_F(Dispatch, PromotesMixedDtypes) {
  auto x = tensor({2}, {1, 2});
  tenon_value cast_args[2] = {value(x), {TENON_VALUE_DTYPE, 0, {.i = TENON_DTYPE_I64}}},
              outs[1] = {};
  ASSERT_EQ(slots::op_call(find_operator("fake::cast"), cast_args, 2, outs, 1, nullptr), TENON_OK);
  TensorRef whole(impl(as_tensor(outs[0])));
  auto result = call("fake::add", {value(whole), value(x)});
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_EQ(result.tensor->dtype, TENON_DTYPE_F32);
  EXPECT_THAT(values(result.tensor.get()), ElementsAre(2, 4));
}

TEST_F(Dispatch, ViewsOfKnownShapeRememberTheRoot) {
  auto x = tensor({4}, {1, 2, 3, 4});
  int64_t two = 2, stride = 1;
  tenon_tensor *middle, *last;
  ASSERT_EQ(slots::tensor_view_of(x.get(), TENON_DTYPE_F32, 1, &two, &stride, 1, &middle, nullptr),
            TENON_OK);
  TensorRef first_view(impl(middle));
  EXPECT_EQ(slots::tensor_base(middle), x.get());
  EXPECT_THAT(values(impl(middle)), ElementsAre(2, 3));
  ASSERT_EQ(slots::tensor_view_of(middle, TENON_DTYPE_F32, 1, &two, &stride, 1, &last, nullptr),
            TENON_OK);
  TensorRef second_view(impl(last));
  EXPECT_EQ(slots::tensor_base(last), x.get());
  EXPECT_THAT(values(impl(last)), ElementsAre(3, 4));
  tenon_tensor* outside;
  EXPECT_EQ(slots::tensor_view_of(last, TENON_DTYPE_F32, 1, &two, &stride, 1, &outside, nullptr),
            TENON_OUT_OF_RANGE);
}

TEST_F(Dispatch, OtherMemoryMakesAViewNone) {
  auto x = tensor({4}, {1, 2, 3, 4}), y = tensor({2}, {5, 6});
  int64_t two = 2, stride = 1;
  tenon_tensor* view;
  ASSERT_EQ(slots::tensor_view_of(x.get(), TENON_DTYPE_F32, 1, &two, &stride, 1, &view, nullptr),
            TENON_OK);
  TensorRef owner(impl(view));
  ASSERT_EQ(slots::tensor_assign(view, y.get(), nullptr), TENON_OK);
  EXPECT_EQ(slots::tensor_base(view), nullptr);
  EXPECT_FALSE(view->flags & TENON_TENSOR_FOLLOWS_BASE);
  EXPECT_THAT(values(impl(view)), ElementsAre(5, 6));
  EXPECT_EQ(slots::tensor_use_count(x.get()), 1u);
  EXPECT_EQ(slots::tensor_storage_use_count(x.get()), 1u);
}

TEST_F(Dispatch, ViewsStayWithTheMemoryThatTheirBaseHad) {
  auto x = tensor({4}, {1, 2, 3, 4}), y = tensor({2}, {5, 6});
  int64_t two = 2, stride = 1;
  tenon_tensor *view, *further;
  ASSERT_EQ(slots::tensor_view_of(x.get(), TENON_DTYPE_F32, 1, &two, &stride, 1, &view, nullptr),
            TENON_OK);
  TensorRef owner(impl(view));
  ASSERT_EQ(slots::tensor_assign(x.get(), y.get(), nullptr), TENON_OK);
  EXPECT_EQ(slots::tensor_base(view), nullptr);
  EXPECT_THAT(values(impl(view)), ElementsAre(2, 3));
  ASSERT_EQ(slots::tensor_view_of(view, TENON_DTYPE_F32, 1, &two, &stride, 0, &further, nullptr),
            TENON_OK);
  TensorRef second(impl(further));
  EXPECT_EQ(slots::tensor_base(further), view);
}

TEST_F(Dispatch, WrappedMemoryEndsWhereAddressesDo) {
  float memory[2] = {};
  constexpr int64_t kHuge = int64_t{1} << 62;
  int64_t shape[] = {3}, strides[] = {kHuge};
  tenon_tensor* wrapped;
  EXPECT_NE(slots::tensor_wrap(slots::device_host(), TENON_DTYPE_F32, 1, shape, strides, memory, 0,
                               nullptr, nullptr, &wrapped, nullptr),
            TENON_OK);
}

struct ViewCase {
  std::vector<int64_t> shape, strides;
  int64_t offset;
  tenon_status status;
  bool contiguous = false;
};

TEST_F(Dispatch, ViewsLieInsideTheirStorage) {
  auto x = tensor({6}, {0, 1, 2, 3, 4, 5});
  constexpr int64_t kHuge = int64_t{1} << 62;
  const ViewCase cases[] = {
      {{2, 3}, {3, 1}, 0, TENON_OK, true},
      {{3, 2}, {1, 3}, 0, TENON_OK},
      {{1, 6}, {77, 1}, 0, TENON_OK, true},  // an axis of one element goes nowhere
      {{6}, {-1}, 5, TENON_OK},
      {{6}, {-1}, 4, TENON_OUT_OF_RANGE},
      {{3, 2}, {-2, -1}, 5, TENON_OK},
      {{3, 2}, {-2, 1}, 4, TENON_OK},
      {{3, 2}, {-2, 1}, 5, TENON_OUT_OF_RANGE},
      {{2, 2}, {-5, 5}, 5, TENON_OUT_OF_RANGE},
      {{}, {}, 5, TENON_OK, true},
      {{}, {}, 6, TENON_OUT_OF_RANGE},
      {{}, {}, -1, TENON_OUT_OF_RANGE},
      {{4}, {2}, 0, TENON_OUT_OF_RANGE},
      {{1 << 20}, {0}, 5, TENON_OK},
      {{1 << 26, 1 << 26}, {0, 0}, 5, TENON_OK},
      {{1, 6}, {int64_t{1} << 40, 1}, 0, TENON_OK, true},
      {{2, 2}, {1 << 25, 1}, 0, TENON_OUT_OF_RANGE},
      {{2, 2}, {1 << 26, 1}, 0, TENON_OUT_OF_RANGE},
      {{2}, {-(1 << 26)}, 0, TENON_OUT_OF_RANGE},
      {{}, {}, int64_t{1} << 50, TENON_OUT_OF_RANGE},
      {{}, {}, -(int64_t{1} << 50), TENON_OUT_OF_RANGE},
      {{0, 3}, {7, 5}, 6, TENON_OK, true},  // no element, so none outside
      {{3, 0}, {kHuge, 1}, 0, TENON_OK, true},
      {{-1}, {1}, 0, TENON_INVALID_ARGUMENT},
      {{kHuge, 4}, {0, 0}, 0, TENON_INVALID_ARGUMENT},
      {{3}, {kHuge}, 0, TENON_OUT_OF_RANGE},
      {{2}, {kHuge}, kHuge, TENON_OUT_OF_RANGE},
      {{}, {}, kHuge, TENON_OUT_OF_RANGE},
      {std::vector<int64_t>(33, 1), std::vector<int64_t>(33, 1), 0, TENON_INVALID_ARGUMENT},
  };
  for (const ViewCase& expected : cases) {
    int32_t ndim = static_cast<int32_t>(expected.shape.size());
    tenon_tensor* view = nullptr;
    tenon_err err;
    tenon_status status = slots::tensor_view(x.get(), TENON_DTYPE_F32, ndim, expected.shape.data(),
                                             expected.strides.data(), expected.offset, &view, &err);
    EXPECT_EQ(status, expected.status) << ndim << " axes at " << expected.offset << err.text;
    if (status != TENON_OK) continue;
    EXPECT_EQ((view->flags & TENON_TENSOR_CONTIGUOUS) != 0, expected.contiguous) << ndim;
    slots::tensor_release(view);
  }
  EXPECT_EQ(slots::tensor_storage_use_count(x.get()), 1u);
}

TEST_F(Dispatch, MakesInputsContiguousForKernelsThatNeedIt) {
  auto x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  auto view = call("fake::reversed", {value(x)});
  ASSERT_EQ(view.status, TENON_OK);
  EXPECT_EQ(slots::tensor_storage(view.tensor.get()), slots::tensor_storage(x.get()));
  EXPECT_EQ(slots::tensor_base(view.tensor.get()), x.get());
  auto result = call("fake::add", {value(view.tensor), value(view.tensor)});
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_THAT(values(result.tensor.get()), ElementsAre(2, 8, 4, 10, 6, 12));
}

TEST_F(Dispatch, WritesInPlaceAndCountsTheVersionUp) {
  auto x = tensor({2}, {1, 2});
  uint32_t before = slots::tensor_version(x.get());
  auto result = call("fake::add", {value(x), number(1)}, x.get());
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_THAT(values(x.get()), ElementsAre(2, 3));
  EXPECT_EQ(slots::tensor_version(x.get()), before + 1);
}

TEST_F(Dispatch, WritesIntoStridedOutputs) {
  auto x = tensor({2, 3}, {1, 2, 3, 4, 5, 6}), target = tensor({3, 2}, {0, 0, 0, 0, 0, 0});
  auto view = call("fake::reversed", {value(target)});
  auto result = call("fake::add", {value(x), value(x)}, view.tensor.get());
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_THAT(values(target.get()), ElementsAre(2, 8, 4, 10, 6, 12));
}

TEST_F(Dispatch, ShiftedOverlapIsComputedAside) {
  auto x = tensor({4}, {1, 2, 3, 4});
  int64_t three = 3, one = 1;
  tenon_tensor *low, *high;
  ASSERT_EQ(slots::tensor_view(x.get(), TENON_DTYPE_F32, 1, &three, &one, 0, &low, nullptr),
            TENON_OK);
  ASSERT_EQ(slots::tensor_view(x.get(), TENON_DTYPE_F32, 1, &three, &one, 1, &high, nullptr),
            TENON_OK);
  TensorRef hold_low{impl(low)}, hold_high{impl(high)};
  auto result = call("fake::add", {tenon::boxed(low), number(10)}, high);
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_THAT(values(x.get()), ElementsAre(1, 11, 12, 13));
}

TEST_F(Dispatch, RefusesOutputsThatDoNotFit) {
  auto x = tensor({2}, {1, 2}), small = tensor({1}, {0});
  auto result = call("fake::add", {value(x), value(x)}, small.get());
  EXPECT_EQ(result.status, TENON_INVALID_ARGUMENT);
  EXPECT_THAT(result.text, HasSubstr("expected an output of shape (2,), got (1,)"));
  auto expanded = tensor({1}, {0});
  TensorRef wide;
  int64_t two = 2;
  ASSERT_EQ(expand_view(*expanded.get(), 1, &two, &wide, nullptr), TENON_OK);
  result = call("fake::add", {value(x), value(x)}, wide.get());
  EXPECT_THAT(result.text, HasSubstr("share memory"));
}

TEST_F(Dispatch, ViewsAreBoundsChecked) {
  auto x = tensor({4}, {1, 2, 3, 4});
  int64_t size = 4, stride = 1;
  tenon_tensor* view = nullptr;
  tenon_err err;
  EXPECT_EQ(slots::tensor_view(x.get(), TENON_DTYPE_F32, 1, &size, &stride, 1, &view, &err),
            TENON_OUT_OF_RANGE);
  EXPECT_THAT(err.text, HasSubstr("outside its storage of 16 bytes"));
  stride = INT64_MAX;
  EXPECT_EQ(slots::tensor_view(x.get(), TENON_DTYPE_F32, 1, &size, &stride, 0, &view, nullptr),
            TENON_OUT_OF_RANGE);
}

TEST_F(Dispatch, DataDependentKernelsAllocateTheirOutput) {
  auto x = tensor({4}, {-1, 2, -3, 4});
  auto result = call("fake::positive", {value(x)});
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_THAT(values(result.tensor.get()), ElementsAre(2, 4));
}

TEST_F(Dispatch, DataDependentResultsAreCheckedAgainstGivenOutputs) {
  auto x = tensor({4}, {-1, 2, -3, 4}), fits = tensor({2}, {0, 0}),
       memory = tensor({4}, {7, 7, 7, 7});
  ASSERT_EQ(call("fake::positive", {value(x)}, fits.get()).status, TENON_OK);
  EXPECT_THAT(values(fits.get()), ElementsAre(2, 4));
  int64_t one = 1, stride = 1;
  tenon_tensor* part;
  ASSERT_EQ(
      slots::tensor_view_of(memory.get(), TENON_DTYPE_F32, 1, &one, &stride, 0, &part, nullptr),
      TENON_OK);
  TensorRef held(impl(part));
  auto result = call("fake::positive", {value(x)}, part);
  EXPECT_EQ(result.status, TENON_INVALID_ARGUMENT);
  EXPECT_THAT(result.text, HasSubstr("expected an output of shape (2,), got (1,)"));
  EXPECT_THAT(values(memory.get()), ElementsAre(7, 7, 7, 7));
}

TEST_F(Dispatch, ListsOfTensorsHoldNoNull) {
  auto x = tensor({1}, {1}), y = tensor({1}, {2});
  tenon_tensor* list[2] = {x.get(), y.get()};
  tenon_value argument{TENON_VALUE_TENSORS, 2, {.p = list}};
  EXPECT_THAT(values(call("fake::ends", {argument}).tensor.get()), ElementsAre(3));
  list[1] = nullptr;
  auto result = call("fake::ends", {argument});
  EXPECT_EQ(result.status, TENON_TYPE_MISMATCH);
  EXPECT_THAT(result.text, HasSubstr("argument `tensors`: expected a Tensor at every index of the "
                                     "list, got none at index 1"));
}

TEST_F(Dispatch, ErrorsOfPartsNameTheComposite) {
  auto x = tensor({2}, {1, 2});
  fake::kernels_fail = true;
  EXPECT_THAT(call("fake::twice", {value(x)}).text, StartsWith("[fake::twice] > [fake::add]"));
}

TEST_F(Dispatch, ViewsOfNumbersAreRefused) {
  auto result = call("fake::reversed", {number(1)});
  EXPECT_EQ(result.status, TENON_TYPE_MISMATCH);
  EXPECT_THAT(result.text, HasSubstr("[fake::reversed] argument `x`: expected a Tensor"));
}

TEST_F(Dispatch, MetaTensorsHaveShapesOnly) {
  auto x = tensor({2, 3}, {}, TENON_DEVICE_META);
  auto result = call("fake::add", {value(x), number(1)});
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_EQ(result.tensor->ndim, 2);
  EXPECT_EQ(result.tensor->data, nullptr);
  EXPECT_EQ(call("fake::positive", {value(x)}).status, TENON_UNSUPPORTED);
}

TEST_F(Dispatch, FallsBackToTheHostAndCounts) {
  slots::fallback_report(
      1, [](void*, const char*, uint64_t) {}, nullptr);
  auto x = tensor({2}, {1, 2}, fake::remote_device());
  auto result = call("fake::add", {value(x), number(1)});
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_EQ(result.tensor->device, fake::remote_device());
  EXPECT_THAT(values(result.tensor.get()), ElementsAre(2, 3));
  std::string report;
  slots::fallback_report(
      1,
      [](void* user, const char* text, uint64_t bytes) {
        static_cast<std::string*>(user)->assign(text, bytes);
      },
      &report);
  EXPECT_THAT(report,
              HasSubstr(R"({"device":"remote","op":"fake::add","native":0,"lowered":0,"host":1)"));
}

TEST_F(Dispatch, HostFallbackWritesStridedOutputsAndKeepsWhatLiesBetween) {
  auto x = tensor({2}, {1, 2}, fake::remote_device()),
       target = tensor({4}, {7, 7, 7, 7}, fake::remote_device());
  int64_t two = 2, stride = 2;
  tenon_tensor* view;
  ASSERT_EQ(slots::tensor_view(target.get(), TENON_DTYPE_F32, 1, &two, &stride, 0, &view, nullptr),
            TENON_OK);
  TensorRef hold(impl(view));
  auto result = call("fake::add", {value(x), value(x)}, view);
  ASSERT_EQ(result.status, TENON_OK) << result.text;
  EXPECT_THAT(values(target.get()), ElementsAre(2, 7, 4, 7));
}

TEST_F(Dispatch, DeniedFallbackSaysHowToAllowIt) {
  slots::fallback_set_policy("deny,remote:fake::copy=allow", nullptr);
  auto x = tensor({2}, {1, 2}, fake::remote_device());
  auto result = call("fake::add", {value(x), value(x)});
  EXPECT_EQ(result.status, TENON_PERMISSION_DENIED);
  EXPECT_THAT(result.text, HasSubstr("remote:0 has no kernel for float32"));
  EXPECT_THAT(result.text, HasSubstr("allow it with remote:fake::add=allow"));
  EXPECT_EQ(call("fake::copy", {value(x)}).status, TENON_OK);
  tenon_err err;
  EXPECT_EQ(slots::fallback_set_policy("perhaps", &err), TENON_INVALID_ARGUMENT);
  EXPECT_THAT(err.text, HasSubstr("expected deny, warn_once or allow"));
}

TEST_F(Dispatch, LowersThroughTheDecomposition) {
  auto x = tensor({2}, {1, 2});
  EXPECT_THAT(values(call("fake::doubled", {value(x)}).tensor.get()), ElementsAre(2, 4));
  EXPECT_THAT(values(call("fake::twice", {value(x)}).tensor.get()), ElementsAre(2, 4));
}

TEST_F(Dispatch, ADevicesKernelForTheWholeOfACompositeRunsInsteadOfItsParts) {
  auto x = tensor({2}, {1, 2});  // the kernel copies, the parts would double
  EXPECT_THAT(values(call("fake::whole", {value(x)}).tensor.get()), ElementsAre(1, 2));
}

TEST_F(Dispatch, MissingKernelsAndArgumentsAreNamed) {
  auto x = tensor({2}, {1, 2});
  EXPECT_THAT(call("fake::nowhere", {value(x)}).text,
              HasSubstr("[fake::nowhere] no kernel for float32 on fakehost:0"));
  EXPECT_THAT(call("fake::add", {value(x)}).text,
              HasSubstr("argument `y` is missing; the signature is fake::add("));
  EXPECT_THAT(call("fake::axis", {value(x), number(0.5)}).text,
              HasSubstr("argument `axis`: expected int, got float"));
  EXPECT_THAT(call("fake::add", {value(x), value(x), value(x)}).text,
              HasSubstr("at most 2 arguments, got 3"));
  auto y = tensor({3}, {1, 2, 3});
  EXPECT_THAT(call("fake::add", {value(x), value(y)}).text,
              HasSubstr("expected shapes that broadcast, got (2,) and (3,)"));
  auto far = tensor({2}, {1, 2}, fake::remote_device());
  EXPECT_THAT(call("fake::add", {value(x), value(far)}).text,
              HasSubstr("expected all tensors on one device"));
}

TEST_F(Dispatch, SilentKernelFailuresGetAText) {
  fake::kernels_fail = true;
  auto x = tensor({2}, {1, 2});
  auto result = call("fake::add", {value(x), value(x)});
  EXPECT_EQ(result.status, TENON_INTERNAL);
  EXPECT_THAT(result.text, HasSubstr("failed with code 2 and no text"));
}

// A layer that counts what it sees and passes it on.
struct Counting {
  int calls = 0;
  int32_t id = -1;
};
tenon_status count_and_continue(void* self, const tenon_op* op, tenon_value* args, uint32_t nargs,
                                tenon_value* outs, uint32_t nouts, tenon_err* err) {
  auto& layer = *static_cast<Counting*>(self);
  ++layer.calls;
  return slots::op_call_below(layer.id, op, args, nargs, outs, nouts, err);
}

TEST_F(Dispatch, LayersSeeTensorsThatCarryTheirBit) {
  static Counting counting;
  tenon_layer_def def{sizeof def, TENON_LAYER_ENABLED, "counting",        50,
                      0,          &counting,           count_and_continue};
  counting.id = slots::layer_register(&def, nullptr);
  ASSERT_GE(counting.id, 0);
  auto x = tensor({2}, {1, 2}), y = tensor({2}, {1, 2});
  call("fake::add", {value(x), value(y)});
  EXPECT_EQ(counting.calls, 0);
  slots::tensor_set_layer(x.get(), counting.id, 1);
  EXPECT_THAT(values(call("fake::add", {value(x), value(y)}).tensor.get()), ElementsAre(2, 4));
  EXPECT_EQ(counting.calls, 1);
  call("fake::add", {value(y), value(y)}, x.get());  // writing into one counts too
  EXPECT_EQ(counting.calls, 2);
  call("fake::twice", {value(x)});  // the layer sees the parts of a composite
  EXPECT_EQ(counting.calls, 3);
  EXPECT_EQ(slots::layer_enable(counting.id, 0), 1);
  call("fake::add", {value(x), value(y)});
  EXPECT_EQ(counting.calls, 3);
  slots::layer_enable(counting.id, 1);
}

// Layers that mark no tensors leave the eight bits of a tensor to others: there is room for 24 of them.
TEST_F(Dispatch, LayersWithoutABitHaveRoomOfTheirOwn) {
  static Counting counting[24];
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (int i = 0; i < 24; ++i) all.push_back("without a bit " + std::to_string(i));
    return all;
  }();
  std::vector<int32_t> ids;
  for (int i = 0; i < 24; ++i) {
    tenon_layer_def def{sizeof def,
                        TENON_LAYER_EVERY_CALL | TENON_LAYER_NO_BIT,
                        names[i].c_str(),
                        50,
                        0,
                        &counting[i],
                        count_and_continue};
    ids.push_back(counting[i].id = slots::layer_register(&def, nullptr));
    EXPECT_EQ(slots::layer_register(&def, nullptr), counting[i].id) << "its old place";
  }
  EXPECT_EQ(ids.front(), 8);
  EXPECT_EQ(ids.back(), 31);
  tenon_layer_def more{sizeof more,
                       TENON_LAYER_EVERY_CALL | TENON_LAYER_NO_BIT,
                       "one more",
                       50,
                       0,
                       &counting[0],
                       count_and_continue};
  tenon_err err;
  EXPECT_EQ(slots::layer_register(&more, &err), -1);
  EXPECT_THAT(err.text, HasSubstr("layer one more: expected at most 24 layers that mark no "
                                  "tensors, and that many are registered; "
                                  "run without one of the plugins that register a layer"));
  auto x = tensor({2}, {1, 2});
  slots::layer_enable(ids[3], 1);
  slots::layer_enable(ids[23], 1);
  EXPECT_THAT(values(call("fake::add", {value(x), value(x)}).tensor.get()), ElementsAre(2, 4));
  slots::layer_enable(ids[3], 0);
  slots::layer_enable(ids[23], 0);
  call("fake::add", {value(x), value(x)});
  for (int i = 0; i < 24; ++i) EXPECT_EQ(counting[i].calls, i == 3 || i == 23) << i;
}

// What a layer that watches kernels sees, in order: "fake::add on fakehost:0".
struct Watching {
  std::vector<std::string> seen;
  int32_t id = -1;
};
tenon_status watch_and_continue(void* self, const tenon_op* op, tenon_value* args, uint32_t nargs,
                                tenon_value* outs, uint32_t nouts, tenon_err* err) {
  auto& layer = *static_cast<Watching*>(self);
  layer.seen.push_back(op->name + " on " + device_name(as_tensor(args[0])->device));
  return slots::op_call_below(layer.id, op, args, nargs, outs, nouts, err);
}

TEST_F(Dispatch, LayersThatWatchKernelsSeeLoweringsAndHostRuns) {
  static Watching watching;
  tenon_layer_def def{sizeof def,
                      TENON_LAYER_EVERY_CALL | TENON_LAYER_KERNELS,
                      "watching",
                      1000,
                      0,
                      &watching,
                      watch_and_continue};
  watching.id = slots::layer_register(&def, nullptr);
  ASSERT_GE(watching.id, 0);
  slots::layer_enable(watching.id, 1);
  auto seen = [] { return std::exchange(watching.seen, {}); };
  auto x = tensor({2}, {1, 2}), far = tensor({2}, {1, 2}, fake::remote_device());
  EXPECT_EQ(call("fake::doubled", {value(x)}).status, TENON_OK);
  EXPECT_THAT(seen(), ElementsAre("fake::doubled on fakehost:0", "fake::add on fakehost:0"));
  EXPECT_THAT(values(call("fake::add", {value(far), value(far)}).tensor.get()), ElementsAre(2, 4));
  EXPECT_THAT(seen(), ElementsAre("fake::add on remote:0", "fake::add on fakehost:0"));
  call("fake::twice", {value(x)});
  EXPECT_THAT(seen(), ElementsAre("fake::add on fakehost:0"))
      << "no kernel for the whole: its parts";
  {
    LayersOff off;
    call("fake::add", {value(x), value(x)});
  }
  EXPECT_THAT(seen(), ElementsAre("fake::add on fakehost:0"));
  slots::layer_enable(watching.id, 0);
  call("fake::add", {value(x), value(x)});
  EXPECT_THAT(seen(), ElementsAre());
}

TEST_F(Dispatch, WhatAKernelThrowsIsAnErrorThatNamesIt) {
  static const int owner = 0;
  static int thrown;
  tenon_kernel_def def{};
  def.struct_size = sizeof def;
  def.op = "fake::add";
  def.device = "fakehost";
  def.dtype_mask = 1u << TENON_DTYPE_F32;
  def.score = 10;
  def.boxed = [](tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t,
                 tenon_err*) -> tenon_status {
    if (++thrown == 1) throw std::runtime_error("first");
    if (thrown == 2) throw std::bad_alloc();
    throw 3;
  };
  ASSERT_EQ(registry_add({"thrower", "", {}, {&def, 1}}, &owner, nullptr), TENON_OK);
  auto x = tensor({2}, {1, 2});
  const std::string kernel = "[fake::add] the kernel of plugin thrower for fakehost";
  auto result = call("fake::add", {value(x), value(x)});
  EXPECT_EQ(result.status, TENON_INTERNAL);
  EXPECT_EQ(result.text, "a C++ exception escaped from " + kernel + ": first");
  result = call("fake::add", {value(x), value(x)});
  EXPECT_EQ(result.status, TENON_OUT_OF_MEMORY);
  EXPECT_EQ(result.text, kernel + " ran out of host memory");
  result = call("fake::add", {value(x), value(x)});
  EXPECT_EQ(result.status, TENON_INTERNAL);
  EXPECT_EQ(result.text, "an exception of unknown type escaped from " + kernel);
  registry_remove(&owner);
  EXPECT_THAT(values(call("fake::add", {value(x), value(x)}).tensor.get()), ElementsAre(2, 4));
}

TEST_F(Dispatch, ConflictingDefinitionsAreRefusedWhole) {
  tenon_op_def same = *slots::op_def(find_operator("fake::add"));
  tenon_op_def fresh = same, other = same;
  fresh.name = "fake::fresh";
  other.schema = "fake::add(Tensor x) -> Tensor";
  other.schema_hash = 1;
  other.origin = "elsewhere.yaml:3";
  static const int owner = 0;
  tenon_op_def list[] = {fresh, other};
  tenon_err err;
  EXPECT_EQ(registry_add({"rival", "", list, {}}, &owner, &err), TENON_ALREADY_EXISTS);
  EXPECT_THAT(err.text, HasSubstr("elsewhere.yaml:3 by rival"));
  EXPECT_EQ(find_operator("fake::fresh"), nullptr);
  tenon_op_def agreeing[] = {same};
  EXPECT_EQ(registry_add({"twin", "", agreeing, {}}, &owner, nullptr), TENON_OK);
  registry_remove(&owner);
  EXPECT_NE(find_operator("fake::add"), nullptr);
}

TEST_F(Dispatch, AnOperatorOfTwoPluginsOutlivesTheFirst) {
  static const int first = 0, second = 0;
  tenon_op_def def = find_operator("fake::add")->def;
  def.name = "fake::shared";
  def.schema = "fake::shared(Tensor x, Tensor y) -> Tensor";
  def.origin = "first.yaml:1";
  tenon_op_def equal = def;
  equal.origin = "second.yaml:1";
  ASSERT_EQ(registry_add({"first", "", {&def, 1}, {}}, &first, nullptr), TENON_OK);
  ASSERT_EQ(registry_add({"second", "", {&equal, 1}, {}}, &second, nullptr), TENON_OK);
  Operator* op = find_operator("fake::shared");
  EXPECT_STREQ(op->def.origin, "first.yaml:1");
  registry_remove(&first);
  EXPECT_EQ(find_operator("fake::shared"), op);
  EXPECT_STREQ(op->def.origin, "second.yaml:1");
  registry_remove(&second);
  EXPECT_EQ(find_operator("fake::shared"), nullptr);
}

TEST_F(Dispatch, ExtensionSlotsInUseAreKnownByTheirPlugin) {
  static const int owner = 0;
  starting_plugin = &owner;
  int32_t slot = slots::ext_register("dispatch_test", nullptr);
  starting_plugin = nullptr;
  ASSERT_GE(slot, 0);
  EXPECT_TRUE(used_extension_slots(&owner).empty());
  auto x = tensor({2}, {1, 2});
  slots::ext_set(x.get(), slot, nullptr);
  EXPECT_TRUE(used_extension_slots(&owner).empty());
  slots::ext_set(x.get(), slot, &slot);
  EXPECT_THAT(used_extension_slots(&owner), ElementsAre("dispatch_test"));
}

TEST_F(Dispatch, ExtensionSlotsBeyondTheFirstAreDroppedWithTheirTensor) {
  static std::vector<int> dropped;
  dropped.clear();
  auto drop = [](void* value) { dropped.push_back(*static_cast<int*>(value)); };
  std::vector<int32_t> ids;
  static const char* names[] = {"far 0", "far 1", "far 2", "far 3", "far 4"};
  for (const char* name : names) ids.push_back(slots::ext_register(name, drop));
  ASSERT_GE(ids.back(), 3) << "on the heap";
  int numbers[] = {0, 1, 2, 3, 4};
  {
    auto x = tensor({2}, {1, 2});
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(slots::ext_get(x.get(), ids[i]), nullptr);
      slots::ext_set(x.get(), ids[i], &numbers[i]);
    }
    for (int i = 0; i < 5; ++i) EXPECT_EQ(slots::ext_get(x.get(), ids[i]), &numbers[i]);
    for (int i = 1; i < 5; ++i) slots::ext_set(x.get(), ids[i], nullptr);  // gives the array back
    EXPECT_EQ(slots::ext_get(x.get(), ids[4]), nullptr);
    slots::ext_set(x.get(), ids[4], &numbers[4]);
    EXPECT_TRUE(dropped.empty());
  }
  EXPECT_THAT(dropped, ElementsAre(0, 4));
}

TEST_F(Dispatch, BestScoreRunsUntilItDeclinesOrLeaves) {
  static const int owner = 0;
  static int fast_calls;
  fast_calls = 0;
  auto fast = [](tenon_ctx*, const tenon_value*, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err*) -> tenon_status {
    ++fast_calls;
    auto* out = as_tensor(outs[0]);
    for (int64_t i = 0; i < out->numel; ++i) static_cast<float*>(out->data)[i] = 99;
    return TENON_OK;
  };
  tenon_kernel_def def{};
  def.struct_size = sizeof def;
  def.op = "fake::add";
  def.device = "fakehost";
  def.dtype_mask = 1u << TENON_DTYPE_F32;
  def.score = 10;
  def.boxed = fast;
  def.can_run = [](const tenon_value* args, uint32_t) -> int32_t {
    return as_tensor(args[0])->numel > 2;
  };
  ASSERT_EQ(registry_add({"fast", "", {}, {&def, 1}}, &owner, nullptr), TENON_OK);
  auto small = tensor({2}, {1, 2}), large = tensor({3}, {1, 2, 3});
  EXPECT_THAT(values(call("fake::add", {value(small), value(small)}).tensor.get()),
              ElementsAre(2, 4));
  EXPECT_THAT(values(call("fake::add", {value(large), value(large)}).tensor.get()),
              ElementsAre(99, 99, 99));
  registry_remove(&owner);
  EXPECT_THAT(values(call("fake::add", {value(large), value(large)}).tensor.get()),
              ElementsAre(2, 4, 6));
  EXPECT_EQ(fast_calls, 1);
}

}  // namespace
