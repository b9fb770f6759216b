// SPDX-License-Identifier: Apache-2.0
// The headers that generated code leans on, against a host of which only a few services exist.
#include <gtest/gtest.h>
#include <tenon/ops/expression.hpp>
#include <tenon/ops/shapes.hpp>

#include <limits>

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
std::string last_error;

void fake_fail(tenon_err*, tenon_status, int64_t, const char* text, uint64_t bytes) {
  last_error.assign(text, bytes);
}
const char* fake_dtype_name(int32_t) { return "float32"; }
uint32_t fake_dtype_size(int32_t dtype) {
  static constexpr uint32_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2, 4, 8, 8, 16};
  return sizes[dtype];
}
int32_t fake_promote(int32_t a, int32_t b) { return a > b ? a : b; }

class SupportHeaders : public ::testing::Test {
 protected:
  void SetUp() override {
    static tenon_host table{};
    table.struct_size = sizeof table;
    table.fail = fake_fail;
    table.dtype_name = fake_dtype_name;
    table.dtype_size = fake_dtype_size;
    table.dtype_promote = fake_promote;
    host = &table;
    last_error.clear();
  }
};

struct FakeTensor {
  Ints shape;
  tenon_tensor handle{};
  FakeTensor(Ints sizes, int dtype = TENON_DTYPE_F32) : shape(std::move(sizes)) {
    handle.shape = shape.data();
    handle.ndim = static_cast<int32_t>(shape.size());
    handle.dtype = static_cast<uint8_t>(dtype);
  }
  tenon_value value() { return {TENON_VALUE_TENSOR, 0, {.p = &handle}}; }
};

Ints shape_of(const tenon_meta& meta) { return {meta.shape, meta.shape + meta.ndim}; }
tenon_value ints(const Ints& list) { return IntList(list).value(); }

TEST_F(SupportHeaders, ReduceKeepsOrDropsAxes) {
  FakeTensor x({2, 3, 4});
  tenon_meta out{};
  Ints axes = {0, -1};
  ASSERT_EQ(shapes::reduce("sum", x.value(), "axis", ints(axes), false, out, nullptr), TENON_OK);
  EXPECT_EQ(shape_of(out), Ints({3}));
  ASSERT_EQ(shapes::reduce("sum", x.value(), "axis", ints(axes), true, out, nullptr), TENON_OK);
  EXPECT_EQ(shape_of(out), Ints({1, 3, 1}));
  ASSERT_EQ(shapes::reduce("sum", x.value(), "axis", kNoValue, false, out, nullptr), TENON_OK);
  EXPECT_EQ(shape_of(out), Ints({}));
  ASSERT_EQ(shapes::reduce("sum", x.value(), "axis", ints({}), false, out, nullptr), TENON_OK);
  EXPECT_EQ(shape_of(out), Ints({2, 3, 4}));
}

TEST_F(SupportHeaders, ReduceRefusesWrongAxes) {
  FakeTensor x({2, 3}), scalar({});
  tenon_meta out{};
  Ints far = {2}, twice = {1, -1}, zero = {0}, one = {1};
  EXPECT_EQ(shapes::reduce("sum", x.value(), "axis", ints(far), false, out, nullptr),
            TENON_OUT_OF_RANGE);
  EXPECT_EQ(last_error, "[sum] expected axis in [-2, 2) for 2 dimensions, got 2");
  EXPECT_EQ(shapes::reduce("sum", x.value(), "axis", ints(twice), false, out, nullptr),
            TENON_INVALID_ARGUMENT);
  EXPECT_EQ(last_error, "[sum] expected different axes in axis, got 1 twice");
  // A 0-d tensor counts as one with a single axis, which a reduction may name.
  EXPECT_EQ(shapes::reduce("sum", scalar.value(), "axis", ints(zero), false, out, nullptr),
            TENON_OK);
  EXPECT_EQ(out.ndim, 0);
  EXPECT_EQ(shapes::reduce("sum", scalar.value(), "axis", ints(one), false, out, nullptr),
            TENON_OUT_OF_RANGE);
  EXPECT_EQ(last_error, "[sum] expected axis 0 or -1 for a 0-d tensor, got 1");
}

TEST_F(SupportHeaders, BroadcastNamesWhatDoesNotFit) {
  FakeTensor x({2, 1, 4}), y({3, 1}), bad({2, 3});
  tenon_value a = x.value(), b = y.value(), c = bad.value(), none = kNoValue;
  tenon_meta out{};
  ASSERT_EQ(shapes::broadcast("where", {&a, &none, &b}, out, nullptr), TENON_OK);
  EXPECT_EQ(shape_of(out), Ints({2, 3, 4}));
  EXPECT_EQ(shapes::broadcast("where", {&a, &c}, out, nullptr), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(last_error,
            "[where] expected shapes that broadcast, got (2, 1, 4) and (2, 3): 4 against 3, 1 from "
            "the end");
}

TEST_F(SupportHeaders, DtypesOfResults) {
  FakeTensor i({2}, TENON_DTYPE_I32), f({2}, TENON_DTYPE_F64);
  tenon_value args[] = {kNoValue, i.value(), f.value()};
  EXPECT_EQ(shapes::first_dtype(args, 3), TENON_DTYPE_I32);
  EXPECT_EQ(shapes::promoted_dtype(args, {0, 1, 2}), TENON_DTYPE_F64);
  EXPECT_EQ(shapes::float_dtype(TENON_DTYPE_I64), TENON_DTYPE_F32);
  EXPECT_EQ(shapes::float_dtype(TENON_DTYPE_BF16), TENON_DTYPE_BF16);
  EXPECT_EQ(shapes::accumulate_dtype(TENON_DTYPE_BOOL), TENON_DTYPE_I64);
  EXPECT_EQ(shapes::accumulate_dtype(TENON_DTYPE_I8), TENON_DTYPE_I64);
  EXPECT_EQ(shapes::accumulate_dtype(TENON_DTYPE_U8), TENON_DTYPE_U64);
  EXPECT_EQ(shapes::accumulate_dtype(TENON_DTYPE_U64), TENON_DTYPE_U64);
  EXPECT_EQ(shapes::accumulate_dtype(TENON_DTYPE_F16), TENON_DTYPE_F16);
  EXPECT_EQ(shapes::real_dtype(TENON_DTYPE_C128), TENON_DTYPE_F64);
  EXPECT_EQ(shapes::check_dtype("gather", "index", args[2], shapes::kIntegers, "integer", nullptr),
            TENON_TYPE_MISMATCH);
  EXPECT_EQ(last_error,
            "[gather] expected index of dtype integer, got float32; convert it with cast()");
}

TEST_F(SupportHeaders, ListsOfHostValues) {
  Ints list = {2, 3, 4};
  EXPECT_EQ(expression::slice(list, 1, 99), Ints({3, 4}));
  EXPECT_EQ(expression::slice(list, -2, -1), Ints({3}));
  EXPECT_EQ(expression::slice(list, 2, 1), Ints({}));
  EXPECT_EQ(expression::insert(list, 1, 7), Ints({2, 7, 3, 4}));
  EXPECT_EQ(expression::remove(list, -1), Ints({2, 3}));
  EXPECT_EQ(expression::replace(list, 0, 9), Ints({9, 3, 4}));
  EXPECT_EQ(expression::joined(list, Ints{1}), Ints({2, 3, 4, 1}));
  EXPECT_EQ(expression::axes({}, 3), Ints({0, 1, 2}));
  EXPECT_EQ(expression::axes(Ints{-1, 0}, 3), Ints({2, 0}));
  EXPECT_EQ(expression::inverse(Ints{2, 0, 1}), Ints({1, 2, 0}));
  EXPECT_EQ(expression::broadcast_shapes(Ints{3, 1}, Ints{2, 1, 4}), Ints({2, 3, 4}));
  EXPECT_EQ(expression::prod(list), 24);
  EXPECT_TRUE(expression::equal(list, Ints{2, 3, 4}));
  EXPECT_FALSE(expression::equal(list, Ints{2, 3}));
  Scope scope(nullptr);
  EXPECT_EQ(expression::at(scope, IntList(list), -1), 4);
  EXPECT_EQ(expression::at(scope, IntList(list), 3), 0);
  EXPECT_EQ(scope.status(), TENON_OUT_OF_RANGE);
}

TEST_F(SupportHeaders, IntegersDivideAsInPython) {
  EXPECT_EQ(expression::floor_divide(-7, 2), -4);
  EXPECT_EQ(expression::floor_modulo(-7, 2), 1);
  EXPECT_EQ(expression::floor_modulo(7, -2), -1);
  EXPECT_EQ(expression::floor_divide(1, 0), 0);
  EXPECT_EQ(expression::quotient(int64_t{1}, int64_t{2}), 0.5);
}

TEST_F(SupportHeaders, LimitsOfDtypes) {
  EXPECT_EQ(expression::highest(TENON_DTYPE_I8), 127);
  EXPECT_EQ(expression::lowest(TENON_DTYPE_I8), -128);
  EXPECT_EQ(expression::highest(TENON_DTYPE_U16), 65535);
  EXPECT_EQ(expression::lowest(TENON_DTYPE_U16), 0);
  EXPECT_EQ(expression::lowest(TENON_DTYPE_F16), -65504);
  EXPECT_EQ(expression::highest(TENON_DTYPE_BOOL), 1);
}

TEST_F(SupportHeaders, NumbersStayNumbers) {
  Scope scope(nullptr);
  auto never = [](Scope&, const TensorArg&, const TensorArg&) -> expression::Operand {
    ADD_FAILURE() << "called the operator";
    return ScalarArg(0);
  };
  TensorArg folded = expression::fold_subtract(scope, 3, 1, never);
  EXPECT_EQ(folded.value().tag, TENON_VALUE_INT);
  EXPECT_EQ(folded.value().v.i, 2);
  TensorArg divided = expression::fold_divide(scope, 3, 2, never);
  EXPECT_EQ(divided.value().tag, TENON_VALUE_FLOAT);
  EXPECT_EQ(divided.value().v.f, 1.5);
}

TEST_F(SupportHeaders, ExtentsSaturate) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(expression::plus(most, 1), most);
  EXPECT_EQ(expression::plus(least, -1), least);
  EXPECT_EQ(expression::minus(least, 1), least);
  EXPECT_EQ(expression::minus(0, least), most);
  EXPECT_EQ(expression::times(8, least), least);
  EXPECT_EQ(expression::times(-8, least), most);
  EXPECT_EQ(expression::times(-3, 4), -12);
}

TEST_F(SupportHeaders, IntegersThatOverflowBecomeFloats) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(),
                    most = std::numeric_limits<int64_t>::max();
  const ScalarArg difference = expression::difference(int64_t{1}, least);
  EXPECT_EQ(difference.value().tag, TENON_VALUE_FLOAT);
  EXPECT_EQ(difference.value().v.f, 0x1p63);
  EXPECT_EQ(expression::sum(most, int64_t{1}).value().v.f, 0x1p63);
  EXPECT_EQ(expression::product(least, int64_t{2}).value().v.f, -0x1p64);
  EXPECT_EQ(expression::negative(least).value().v.f, 0x1p63);
  EXPECT_EQ(expression::sum(most, int64_t{-1}).value().v.i, most - 1);
}

TEST_F(SupportHeaders, OptionalListsKnowNone) {
  EXPECT_EQ(OptionalInts().value().tag, TENON_VALUE_NONE);
  EXPECT_EQ(OptionalInts(std::nullopt).value().tag, TENON_VALUE_NONE);
  EXPECT_EQ(OptionalInts(3).value().tag, TENON_VALUE_INT);
  EXPECT_EQ(OptionalInts({1, 2}).value().aux, 2u);
  EXPECT_EQ((*OptionalInts(3))[0], 3);
  EXPECT_EQ(IntList().value().tag, TENON_VALUE_INTS);
}

}  // namespace
}  // namespace tenon
