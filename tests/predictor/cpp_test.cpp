// SPDX-License-Identifier: Apache-2.0
// tenon/predictor.hpp: the same from C++.
#include <tenon/predictor.hpp>

#include "support.hpp"

namespace tenon::test {
namespace {

TEST(PredictorCpp, BindsRunsAndThrows) {
  Predictor predictor(model("pair"), {{"warmup", "recorded"}, {"fallback", "deny"}});
  EXPECT_EQ(predictor.inputs(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(predictor.outputs(), (std::vector<std::string>{"output_0", "output_1"}));
  EXPECT_EQ(predictor.input_type("b").dtype, TENON_DTYPE_I64);
  EXPECT_EQ(predictor.output_type("output_0").shape[1], 3);
  const std::vector<float> a(6, 1);
  const std::vector<int64_t> b(6, 3);
  std::vector<float> sum(6);
  predictor.bind_input<float>("a", {2, 3}, a);
  predictor.bind_input<int64_t>("b", {2, 3}, b);
  predictor.bind_output<float>("output_0", {2, 3}, sum);
  predictor.run();
  EXPECT_EQ(sum, std::vector<float>(6, 5));
  EXPECT_EQ(predictor.output<float>("output_1").size(), 6u);
  EXPECT_NE(predictor.output("output_1").data, a.data());  // the program returns it: a copy
  EXPECT_THROW(predictor.output<double>("output_1"), std::invalid_argument);
  EXPECT_NE(predictor.explain().find("multiply"), std::string::npos);
  Predictor clone = predictor.clone();
  try {
    clone.run();
    FAIL();
  } catch (const PredictorError& error) {
    EXPECT_EQ(error.status(), TENON_FAILED_PRECONDITION);
    EXPECT_NE(std::string(error.what()).find("missing 'a'"), std::string::npos);
  }
  EXPECT_THROW(Predictor(model("pair"), {{"affinity", "0"}}), PredictorError);
  EXPECT_THROW(Predictor(model("nothing")), PredictorError);
}

TEST(PredictorCpp, OpensModelsOfOnnx) {
  const std::vector<float> x(16, 0.5f);
  std::vector<float> scores[2];
  for (const bool is_onnx : {false, true}) {
    Predictor::Settings settings = {{"warmup", "recorded"}};
    if (is_onnx) settings["sizes"] = "batch=1:16";
    Predictor predictor(model(is_onnx ? "classifier.onnx" : "classifier"), settings);
    EXPECT_EQ(predictor.inputs(), (std::vector<std::string>{"x"}));
    EXPECT_EQ(predictor.outputs(), (std::vector<std::string>{"scores", "hidden"}));
    EXPECT_EQ(predictor.input_type("x").dimensions[0], 0);
    predictor.bind_input<float>("x", {2, 8}, x);
    predictor.run();
    const auto made = predictor.output<float>("scores");
    scores[is_onnx].assign(made.begin(), made.end());
  }
  ASSERT_EQ(scores[0].size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(scores[0][i], scores[1][i], 1e-6);
  try {
    Predictor(model("classifier.onnx"));
    FAIL();
  } catch (const PredictorError& error) {
    EXPECT_EQ(error.status(), TENON_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find("set the key `sizes`, to 'batch=8'"),
              std::string::npos);
  }
}

static_assert(predictor_dtype<int>() == TENON_DTYPE_I32);
static_assert(predictor_dtype<long>() == TENON_DTYPE_I64);
static_assert(predictor_dtype<const uint8_t>() == TENON_DTYPE_U8);
static_assert(predictor_dtype<bool>() == TENON_DTYPE_BOOL);
static_assert(predictor_dtype<char*>() == -1);

}  // namespace
}  // namespace tenon::test
