// SPDX-License-Identifier: Apache-2.0
// Every opcode of every primitive, on the device with primitive kernels, on one that lacks what can be made of others, and on the CPU, where it is
// the operator that it is named after: special values, wrap-around, division by zero.
#include <gtest/gtest.h>
#include <tenon/ops/primitive_calls.hpp>

#include <cmath>
#include <functional>
#include <limits>

namespace tenon {
namespace {

tenon_device_id device_named(const char* name) {
  tenon_err* err = host->err_create();
  tenon_device_id id = TENON_DEVICE_NONE;
  EXPECT_EQ(TENON_OK, host->device_find(name, &id, err)) << host->err_text(err);
  host->err_destroy(err);
  return id;
}

class Primitives : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (host) return;
    ASSERT_TRUE(attach(tenon_host_get(TENON_ABI_EPOCH)));
    tenon_err* err = host->err_create();
    for (const char* path :
         {TENON_TEST_STANDARD_OPS, TENON_TEST_CPU, TENON_TEST_LEVEL1, TENON_TEST_FEW})
      ASSERT_EQ(TENON_OK, host->plugin_load(path, err)) << host->err_text(err);
    ASSERT_EQ(TENON_OK, host->fallback_set_policy("deny", err));
    host->err_destroy(err);
  }
  void SetUp() override { err_ = host->err_create(); }
  void TearDown() override { host->err_destroy(err_); }

  template <class T>
  Tensor tensor(int32_t dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
    tenon_tensor* created = nullptr;
    EXPECT_EQ(TENON_OK, host->tensor_create(cpu_, dtype, static_cast<int32_t>(shape.size()),
                                            shape.data(), &created, err_));
    std::memcpy(created->data, values.data(), values.size() * sizeof(T));
    return Tensor::adopt(created);
  }
  Tensor moved(const Tensor& x, tenon_device_id device) {
    tenon_tensor* created = nullptr;
    EXPECT_EQ(TENON_OK, host->tensor_create(device, x->dtype, x->ndim, x->shape, &created, err_));
    EXPECT_EQ(TENON_OK, host->tensor_copy(created, x.get(), err_)) << host->err_text(err_);
    return Tensor::adopt(created);
  }

  // The same call on the CPU and on both devices gives the same.
  template <class Call>
  void expect_agreement(const std::vector<Tensor>& inputs, const std::string& what, Call call) {
    expect_agreement_of(level1_, inputs, what, call);
    expect_agreement_of(few_, inputs, what + ", made of others", call);
  }
  template <class Call>
  void expect_agreement_of(tenon_device_id device, const std::vector<Tensor>& inputs,
                           const std::string& what, Call call) {
    std::vector<Tensor> there;
    for (const Tensor& x : inputs) there.push_back(moved(x, device));
    Scope scope(err_);
    Tensor want = call(scope, inputs), got = call(scope, there);
    ASSERT_TRUE(scope.ok()) << what << ": " << host->err_text(err_);
    ASSERT_EQ(device, got->device) << what;
    got = moved(got, cpu_);
    ASSERT_EQ(want->dtype, got->dtype) << what;
    ASSERT_EQ(want->numel, got->numel) << what;
    for (int64_t i = 0; i < want->numel; ++i) {
      if (want->dtype == TENON_DTYPE_F32) {
        compare_floats(at<float>(want, i), at<float>(got, i), 2e-6, what);
      } else if (want->dtype == TENON_DTYPE_F64) {
        compare_floats(at<double>(want, i), at<double>(got, i), 1e-13, what);
      } else {
        const size_t size = host->dtype_size(want->dtype);
        const auto offset = static_cast<size_t>(i) * size;
        EXPECT_EQ(0, std::memcmp(static_cast<char*>(want->data) + offset,
                                 static_cast<char*>(got->data) + offset, size))
            << what << " at " << i;
      }
    }
  }

  template <class T>
  static T at(const Tensor& x, int64_t i) {
    return static_cast<const T*>(x->data)[i];
  }
  static void compare_floats(double want, double got, double tolerance, const std::string& what) {
    if (std::isnan(want) || std::isinf(want))
      EXPECT_TRUE(want == got || (std::isnan(want) && std::isnan(got)))
          << what << ": expected " << want << ", got " << got;
    else
      EXPECT_NEAR(want, got, tolerance * std::max(1.0, std::fabs(want))) << what;
  }

  // All pairs of special values of a dtype, as two vectors.
  template <class T>
  std::pair<Tensor, Tensor> pairs(int32_t dtype, const std::vector<T>& values) {
    std::vector<T> x, y;
    for (T a : values)
      for (T b : values) x.push_back(a), y.push_back(b);
    const auto count = static_cast<int64_t>(x.size());
    return {tensor(dtype, {count}, x), tensor(dtype, {count}, y)};
  }
  std::vector<std::pair<Tensor, Tensor>> pairs_for(const std::string& dtypes) {
    std::vector<std::pair<Tensor, Tensor>> all;
    const float inf = INFINITY;
    const std::vector<float> floats = {-inf, -2.5f, -1,   -0.5f, -0.0f, 0,  0.5f,
                                       1,    1.5f,  2.5f, 3,     inf,   NAN};
    if (dtypes.find('F') != dtypes.npos) {
      all.push_back(pairs(TENON_DTYPE_F32, floats));
      all.push_back(pairs(TENON_DTYPE_F64, std::vector<double>(floats.begin(), floats.end())));
    }
    if (dtypes.find('I') != dtypes.npos) {
      all.push_back(
          pairs<int32_t>(TENON_DTYPE_I32, {INT32_MIN, -7, -1, 0, 1, 2, 5, 31, INT32_MAX}));
      all.push_back(
          pairs<int64_t>(TENON_DTYPE_I64, {INT64_MIN, -7, -1, 0, 1, 2, 5, 63, INT64_MAX}));
      all.push_back(pairs<uint8_t>(TENON_DTYPE_U8, {0, 1, 2, 7, 128, 255}));
    }
    if (dtypes.find('B') != dtypes.npos) all.push_back(pairs<uint8_t>(TENON_DTYPE_BOOL, {0, 1}));
    return all;
  }

  tenon_err* err_ = nullptr;
  const tenon_device_id cpu_ = device_named("cpu"), level1_ = device_named("level1"),
                        few_ = device_named("few");
};

struct Opcode {
  int64_t number;
  const char* name;
  const char* dtypes;
};
#define TENON_ROW(number, NAME, op, dtypes) {number, #op, #dtypes},
constexpr Opcode kUnary[] = {TENON_UNARY_OPS(TENON_ROW)};
constexpr Opcode kBinary[] = {TENON_BINARY_OPS(TENON_ROW)};
constexpr Opcode kCompare[] = {TENON_COMPARE_OPS(TENON_ROW)};
constexpr Opcode kReduction[] = {TENON_REDUCTION_OPS(TENON_ROW)};
#undef TENON_ROW

TEST_F(Primitives, UnaryAgrees) {
  for (const Opcode& op : kUnary)
    for (auto& [x, y] : pairs_for(op.dtypes))
      expect_agreement({x}, op.name, [&](Scope& scope, const std::vector<Tensor>& in) {
        return primitive::unary(scope, op.number, in[0]);
      });
}

TEST_F(Primitives, BinaryAgrees) {
  for (const Opcode& op : kBinary)
    for (auto& [x, y] : pairs_for(op.dtypes))
      expect_agreement({x, y}, op.name, [&](Scope& scope, const std::vector<Tensor>& in) {
        return primitive::binary(scope, op.number, in[0], in[1]);
      });
}

TEST_F(Primitives, CompareAndSelectAgree) {
  for (const Opcode& op : kCompare)
    for (auto& [x, y] : pairs_for(op.dtypes))
      expect_agreement({x, y}, op.name, [&](Scope& scope, const std::vector<Tensor>& in) {
        Tensor condition = primitive::compare(scope, op.number, in[0], in[1]);
        return primitive::select(scope, condition, in[0], in[1]);
      });
}

TEST_F(Primitives, ReductionsAgree) {
  for (const Opcode& op : kReduction)
    for (auto& [x, y] : pairs_for(op.dtypes))
      expect_agreement({x}, op.name, [&](Scope& scope, const std::vector<Tensor>& in) {
        // Three of a kind, so that sums of large numbers stay the same in any order.
        Tensor rows = primitive::expand(
            scope, primitive::reshape(scope, in[0], {in[0]->numel, 1, 1}), {in[0]->numel, 3, 1});
        return primitive::reduce(scope, op.number, rows);
      });
}

TEST_F(Primitives, RowsAgree) {
  Tensor x = tensor<float>(TENON_DTYPE_F32, {3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor index = tensor<int64_t>(TENON_DTYPE_I64, {4}, {2, 0, 2, 2});
  Tensor source = tensor<float>(TENON_DTYPE_F32, {4, 2}, {1, 1, 2, 2, 4, 4, 4, 4});
  expect_agreement({x, index}, "gather", [](Scope& scope, const std::vector<Tensor>& in) {
    return primitive::gather(scope, in[0], in[1]);
  });
  for (int64_t op : {TENON_SCATTER_ADD, TENON_SCATTER_ASSIGN})
    expect_agreement({x, index, source}, "scatter",
                     [&](Scope& scope, const std::vector<Tensor>& in) {
                       return primitive::scatter(scope, op, in[0], in[1], in[2]);
                     });
}

TEST_F(Primitives, ProductsAgree) {
  Tensor x = tensor<float>(TENON_DTYPE_F32, {2, 1, 3}, {1, 2, 3, 4, 5, 6});
  Tensor y = tensor<float>(TENON_DTYPE_F32, {2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  expect_agreement({x, y}, "contract", [](Scope& scope, const std::vector<Tensor>& in) {
    return primitive::contract(scope, in[0], in[1]);
  });
}

TEST_F(Primitives, NumbersAgree) {
  const std::vector<std::pair<ScalarArg, ScalarArg>> ranges = {
      {0, 1}, {5, -2}, {INT64_MAX - 3, 1}, {0.25, 0.5}, {3, 0}, {true, 0}};
  for (const auto& [start, step] : ranges)
    for (int32_t dtype : {TENON_DTYPE_F32, TENON_DTYPE_I64, TENON_DTYPE_I32, TENON_DTYPE_BOOL}) {
      Tensor any = tensor<float>(TENON_DTYPE_F32, {1}, {0});
      expect_agreement({any}, "iota",
                       [&, s = start, d = step](Scope& scope, const std::vector<Tensor>& in) {
                         return primitive::iota(scope, 5, s, d, dtype, in[0]->device);
                       });
    }
}

TEST_F(Primitives, RandomWordsAgree) {
  Tensor any = tensor<float>(TENON_DTYPE_F32, {1}, {0});
  for (int64_t count : {0, 1, 3, 4, 5, 1000})
    expect_agreement({any}, "random", [&](Scope& scope, const std::vector<Tensor>& in) {
      host->random_seed(77);
      return primitive::random(scope, count, in[0]->device);
    });
}

TEST_F(Primitives, UnknownOpcodesAreRefused) {
  Tensor x = tensor<float>(TENON_DTYPE_F32, {1}, {0});
  for (const Tensor& operand : {x, moved(x, level1_)})
    for (int64_t opcode : {-1, 1000}) {
      Scope scope(err_);
      primitive::unary(scope, opcode, operand);
      EXPECT_EQ(TENON_UNSUPPORTED, scope.status());
      EXPECT_NE(nullptr, std::strstr(host->err_text(err_), "opcode")) << host->err_text(err_);
      host->err_clear(err_);
    }
}

TEST_F(Primitives, ShapesThatDoNotFitAreRefused) {
  Tensor vector = tensor<float>(TENON_DTYPE_F32, {2}, {0, 1});
  Tensor matrix = tensor<float>(TENON_DTYPE_F32, {2, 1}, {0, 1});
  Tensor wide = tensor<float>(TENON_DTYPE_F32, {1, 2}, {0, 1});
  Tensor batch = tensor<float>(TENON_DTYPE_F32, {1, 2, 1}, {0, 1});
  Tensor batches = tensor<float>(TENON_DTYPE_F32, {2, 1, 1}, {0, 1});
  Tensor index = tensor<int64_t>(TENON_DTYPE_I64, {2}, {0, 1});
  Tensor indices = tensor<int64_t>(TENON_DTYPE_I64, {2, 1}, {0, 1});
  Tensor small = tensor<int32_t>(TENON_DTYPE_I32, {2}, {0, 1});
  using namespace primitive;
  const int64_t add = TENON_SCATTER_ADD, sum = TENON_REDUCTION_SUM;
  const std::vector<std::pair<const char*, std::function<void(Scope&)>>> calls = {
      {"index vector of int64", [&](Scope& s) { gather(s, matrix, small); }},
      {"index vector of int64", [&](Scope& s) { gather(s, matrix, indices); }},
      {"[n, inner]", [&](Scope& s) { gather(s, vector, index); }},
      {"index vector of int64", [&](Scope& s) { scatter(s, add, matrix, small, matrix); }},
      {"expected a source of shape (2, 1)",
       [&](Scope& s) { scatter(s, add, matrix, index, wide); }},
      {"expected a source of shape (2, 1)",
       [&](Scope& s) { scatter(s, add, matrix, index, indices); }},
      {"[n, inner]", [&](Scope& s) { scatter(s, add, vector, index, matrix); }},
      {"expected [batch, m, k] and [batch, k, n]", [&](Scope& s) { contract(s, batch, batch); }},
      {"expected [batch, m, k] and [batch, k, n]", [&](Scope& s) { contract(s, batch, batches); }},
      {"[batch, m, k]", [&](Scope& s) { contract(s, matrix, batch); }},
      {"[batch, k, n]", [&](Scope& s) { contract(s, batch, matrix); }},
      {"[outer, n, inner]", [&](Scope& s) { reduce(s, sum, matrix); }},
      {"count of at least 0, got -1", [&](Scope& s) { iota(s, -1, 0, 1, TENON_DTYPE_I64, cpu_); }},
      {"count of at least 0, got -1", [&](Scope& s) { random(s, -1, cpu_); }},
  };
  for (const auto& [text, call] : calls) {
    Scope scope(err_);
    call(scope);
    EXPECT_FALSE(scope.ok()) << text;
    EXPECT_NE(nullptr, std::strstr(host->err_text(err_), text)) << host->err_text(err_);
    host->err_clear(err_);
  }
}

TEST_F(Primitives, ProductsOfTwoDtypesHaveTheWiderOne) {
  Tensor x = tensor<int32_t>(TENON_DTYPE_I32, {1, 1, 2}, {1, 2});
  Tensor y = tensor<double>(TENON_DTYPE_F64, {1, 2, 1}, {0.5, 4});
  Scope scope(err_);
  Tensor product = primitive::contract(scope, x, y);
  ASSERT_TRUE(scope.ok()) << host->err_text(err_);
  EXPECT_EQ(TENON_DTYPE_F64, product->dtype);
  EXPECT_EQ(8.5, at<double>(product, 0));
  x = tensor<double>(TENON_DTYPE_F64, {1, 1, 2}, {0.5, 4});
  y = tensor<int32_t>(TENON_DTYPE_I32, {1, 2, 1}, {1, 2});
  product = primitive::contract(scope, x, y);
  ASSERT_TRUE(scope.ok()) << host->err_text(err_);
  EXPECT_EQ(TENON_DTYPE_F64, product->dtype);
  EXPECT_EQ(8.5, at<double>(product, 0));
}

}  // namespace
}  // namespace tenon
