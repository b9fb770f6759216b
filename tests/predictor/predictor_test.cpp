// SPDX-License-Identifier: Apache-2.0
// What the C functions do, and what they say of each wrong call.
#include "support.hpp"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

namespace tenon::test {
namespace {

const std::vector<float> kRow = {1, -2, 3, -4, 5, -6, 7, -8};

std::vector<float> rows(int64_t count) {
  std::vector<float> elements;
  for (int64_t i = 0; i < count * 8; ++i) elements.push_back(static_cast<float>(i % 11) / 5 - 1);
  return elements;
}

TEST(Predictor, TellsWhatItTakesAndGives) {
  const Handle predictor("classifier");
  uint32_t count = 0;
  const char* name = nullptr;
  tenon_predictor_type type = {};
  type.struct_size = sizeof type;
  ASSERT_EQ(tenon_predictor_input_count(predictor, &count), TENON_OK);
  ASSERT_EQ(count, 1u);
  ASSERT_EQ(tenon_predictor_input_name(predictor, 0, &name), TENON_OK);
  EXPECT_STREQ(name, "x");
  ASSERT_EQ(tenon_predictor_input_type(predictor, 0, &type), TENON_OK);
  EXPECT_EQ(type.dtype, TENON_DTYPE_F32);
  ASSERT_EQ(type.ndim, 2);
  EXPECT_EQ(type.shape[0], -1);
  EXPECT_EQ(type.dimensions[0], 0);
  EXPECT_EQ(type.shape[1], 8);
  EXPECT_EQ(type.dimensions[1], TENON_PREDICTOR_FIXED);
  ASSERT_EQ(tenon_predictor_output_count(predictor, &count), TENON_OK);
  ASSERT_EQ(count, 2u);
  ASSERT_EQ(tenon_predictor_output_name(predictor, 1, &name), TENON_OK);
  EXPECT_STREQ(name, "hidden");
  uint32_t index = 9;
  ASSERT_EQ(tenon_predictor_output_find(predictor, "scores", &index), TENON_OK);
  ASSERT_EQ(tenon_predictor_output_type(predictor, index, &type), TENON_OK);
  EXPECT_EQ(type.shape[0], -1);
  EXPECT_EQ(type.shape[1], 3);
  tenon_predictor_dimension dimension = {};
  dimension.struct_size = sizeof dimension;
  ASSERT_EQ(tenon_predictor_dimension_count(predictor, &count), TENON_OK);
  ASSERT_EQ(count, 1u);
  ASSERT_EQ(tenon_predictor_dimension_at(predictor, 0, &dimension), TENON_OK);
  EXPECT_STREQ(dimension.name, "batch");
  EXPECT_EQ(dimension.min, 1);
  EXPECT_EQ(dimension.max, 16);
  expect_error(tenon_predictor_input_name(predictor, 1, &name), TENON_OUT_OF_RANGE,
               "expected the index of an input, below 1, got 1");
  expect_error(tenon_predictor_output_find(predictor, "scoers", &index), TENON_NOT_FOUND,
               "there is no output 'scoers'; did you mean `scores`?; the program has 'scores', "
               "'hidden'");
}

TEST(Predictor, ReadsItsInputsAnewInEachRun) {
  const Handle predictor("classifier");
  std::vector<float> x = kRow;
  ASSERT_EQ(bind(predictor, "x", {1, 8}, x), TENON_OK) << tenon_predictor_error();
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK) << tenon_predictor_error();
  const std::vector<float> first = output(predictor, "scores");
  ASSERT_EQ(first.size(), 3u);
  EXPECT_NEAR(first[0] + first[1] + first[2], 1, 1e-5);
  x[0] = -50;  // no copy was made of it
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK);
  EXPECT_NE(output(predictor, "scores"), first);
  x = kRow;
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK);
  EXPECT_EQ(output(predictor, "scores"), first);
}

TEST(Predictor, TakesBatchesOfManySizes) {
  const Handle predictor("classifier");
  const std::vector<float> many = rows(16);
  ASSERT_EQ(bind(predictor, "x", {16, 8}, many), TENON_OK);
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK);
  const std::vector<float> all = output(predictor, "scores");
  for (int64_t count : {1, 3, 7}) {
    ASSERT_EQ(bind(predictor, "x", {count, 8}, many), TENON_OK);
    ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK) << tenon_predictor_error();
    const std::vector<float> some = output(predictor, "scores");
    ASSERT_EQ(some.size(), static_cast<size_t>(count) * 3);
    for (size_t i = 0; i < some.size(); ++i) EXPECT_NEAR(some[i], all[i], 1e-6);
  }
  expect_error(
      bind(predictor, "x", {17, 8}, rows(17)), TENON_INVALID_ARGUMENT,
      "input 'x': expected float32[batch, 8], got float32[17, 8]; batch goes from 1 to 16");
}

TEST(Predictor, WritesIntoBoundOutputs) {
  const Handle predictor("classifier");
  const std::vector<float> x = rows(2);
  std::vector<float> scores(6), hidden(8);
  const int64_t scores_shape[] = {2, 3}, hidden_shape[] = {2, 4};
  ASSERT_EQ(bind(predictor, "x", {2, 8}, x), TENON_OK);
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK);
  const std::vector<float> expected = output(predictor, "scores");
  const std::vector<float> expected_hidden = output(predictor, "hidden");
  ASSERT_EQ(tenon_predictor_bind_output(predictor, "scores", TENON_DTYPE_F32, 2, scores_shape,
                                        scores.data(), 24),
            TENON_OK)
      << tenon_predictor_error();
  ASSERT_EQ(tenon_predictor_bind_output(predictor, "hidden", TENON_DTYPE_F32, 2, hidden_shape,
                                        hidden.data(), 32),
            TENON_OK);
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK) << tenon_predictor_error();
  EXPECT_EQ(scores, expected);
  EXPECT_EQ(hidden, expected_hidden);  // which a later step reads, so that it is copied
  tenon_predictor_view view = empty_view();
  ASSERT_EQ(tenon_predictor_output(predictor, "scores", &view), TENON_OK);
  EXPECT_EQ(view.data, scores.data());
  ASSERT_EQ(bind(predictor, "x", {1, 8}, x), TENON_OK);
  expect_error(tenon_predictor_run(predictor), TENON_INVALID_ARGUMENT, "float32[1, 3]");
  ASSERT_EQ(tenon_predictor_unbind_outputs(predictor), TENON_OK);
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK);
  EXPECT_EQ(output(predictor, "scores").size(), 3u);
}

// An output as a tensor. It is kept: what would release it is the host table, which plugins have.
const tenon_tensor* output_tensor(tenon_predictor* predictor, const char* name) {
  static auto& kept = *new std::vector<tenon_tensor*>;
  tenon_tensor* tensor = nullptr;
  EXPECT_EQ(tenon_predictor_output_tensor(predictor, name, &tensor), TENON_OK)
      << tenon_predictor_error();
  kept.push_back(tensor);
  return tensor;
}

std::vector<float> elements_of(const tenon_tensor* tensor) {
  const char* first = static_cast<const char*>(tensor->data) + tensor->byte_offset;
  const auto* elements = reinterpret_cast<const float*>(first);
  return {elements, elements + tensor->numel};
}

TEST(Predictor, OutputsAreNoMemoryOfTheCaller) {
  const Handle predictor("pair");
  std::vector<float> a(6, 1), other(6, 5), mine(6);
  const std::vector<int64_t> b(6, 2);
  const int64_t shape[] = {2, 3};
  ASSERT_EQ(bind(predictor, "a", {2, 3}, a), TENON_OK);
  ASSERT_EQ(tenon_predictor_bind_input(predictor, "b", TENON_DTYPE_I64, 2, shape, b.data(), 48),
            TENON_OK);
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK) << tenon_predictor_error();
  tenon_predictor_view view = empty_view();
  ASSERT_EQ(tenon_predictor_output(predictor, "output_1", &view), TENON_OK);  // is `a`
  EXPECT_NE(view.data, a.data());
  const tenon_tensor* passed = output_tensor(predictor, "output_1");
  EXPECT_EQ(passed->flags & TENON_TENSOR_READONLY, 0u);
  a.assign(6, 9);
  EXPECT_EQ(elements_of(passed), std::vector<float>(6, 1));
  // What is bound anew may be freed, and so what was made of it is gone.
  auto expect_none = [&] {
    expect_error(tenon_predictor_output(predictor, "output_0", &view), TENON_FAILED_PRECONDITION,
                 "there is none");
  };
  ASSERT_EQ(bind(predictor, "a", {2, 3}, other), TENON_OK);
  expect_none();
  ASSERT_EQ(tenon_predictor_bind_output(predictor, "output_0", TENON_DTYPE_F32, 2, shape,
                                        mine.data(), 24),
            TENON_OK);
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK) << tenon_predictor_error();
  EXPECT_EQ(mine, std::vector<float>(6, 12));
  const tenon_tensor* copy = output_tensor(predictor, "output_0");
  mine.assign(6, 0);
  EXPECT_EQ(elements_of(copy), std::vector<float>(6, 12));
  std::vector<float> next(6);
  ASSERT_EQ(tenon_predictor_bind_output(predictor, "output_0", TENON_DTYPE_F32, 2, shape,
                                        next.data(), 24),
            TENON_OK);
  expect_none();
}

TEST(Predictor, SaysWhatIsWrongWithBoundMemory) {
  const Handle predictor("pair");
  const std::vector<float> a(6, 1);
  std::vector<int64_t> b(6, 2);
  const int64_t shape[] = {2, 3};
  expect_error(tenon_predictor_run(predictor), TENON_FAILED_PRECONDITION,
               "run: expected all inputs to be bound, missing 'a' (float32[2, 3]), 'b' (int64[2, "
               "3])");
  auto bind_b = [&](int32_t dtype, int32_t ndim, const int64_t* sizes, const void* data,
                    uint64_t bytes) {
    return tenon_predictor_bind_input(predictor, "b", dtype, ndim, sizes, data, bytes);
  };
  expect_error(bind_b(TENON_DTYPE_I32, 2, shape, b.data(), 48), TENON_TYPE_MISMATCH,
               "input 'b': expected int64[2, 3], got int32[2, 3]; convert it");
  expect_error(bind_b(99, 2, shape, b.data(), 48), TENON_TYPE_MISMATCH, "dtype 99 (none)");
  expect_error(bind_b(TENON_DTYPE_I64, 1, shape, b.data(), 48), TENON_INVALID_ARGUMENT,
               "expected int64[2, 3], got int64[2]");
  expect_error(bind_b(TENON_DTYPE_I64, 33, shape, b.data(), 48), TENON_INVALID_ARGUMENT,
               "expected 0 to 32 axes and their sizes, got 33");
  expect_error(bind_b(TENON_DTYPE_I64, -1, shape, b.data(), 48), TENON_INVALID_ARGUMENT, "got -1");
  expect_error(bind_b(TENON_DTYPE_I64, 2, nullptr, b.data(), 48), TENON_INVALID_ARGUMENT,
               "got 2 axes and NULL");
  expect_error(bind_b(TENON_DTYPE_I64, 2, shape, b.data(), 47), TENON_INVALID_ARGUMENT,
               "input 'b': expected 48 bytes for int64[2, 3], got 47");
  expect_error(bind_b(TENON_DTYPE_I64, 2, shape, nullptr, 48), TENON_INVALID_ARGUMENT,
               "expected memory for int64[2, 3], got NULL");
  expect_error(bind_b(TENON_DTYPE_I64, 2, shape, reinterpret_cast<char*>(b.data()) + 4, 48),
               TENON_INVALID_ARGUMENT, "aligned to 8 bytes");
  expect_error(tenon_predictor_bind_input(predictor, "c", TENON_DTYPE_I64, 2, shape, b.data(), 48),
               TENON_NOT_FOUND, "there is no input 'c'; the program has 'a', 'b'");
  expect_error(
      tenon_predictor_bind_input(predictor, nullptr, TENON_DTYPE_I64, 2, shape, b.data(), 48),
      TENON_INVALID_ARGUMENT, "expected the name of an input, got NULL");
  ASSERT_EQ(bind(predictor, "a", {2, 3}, a), TENON_OK);
  expect_error(tenon_predictor_bind_output(predictor, "output_0", TENON_DTYPE_F32, 2, shape,
                                           const_cast<float*>(a.data()), 24),
               TENON_INVALID_ARGUMENT,
               "output 'output_0': its memory overlaps that of 'a', and outputs are written while "
               "inputs are still read");
  ASSERT_EQ(bind_b(TENON_DTYPE_I64, 2, shape, b.data(), 48), TENON_OK);
  tenon_predictor_view view = empty_view();
  expect_error(tenon_predictor_output(predictor, "output_0", &view), TENON_FAILED_PRECONDITION,
               "there is none; call run first");
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK) << tenon_predictor_error();
  EXPECT_EQ(output(predictor, "output_0"), std::vector<float>(6, 4));
  EXPECT_EQ(output(predictor, "output_1"), a);
  view.struct_size = 0;
  expect_error(tenon_predictor_output(predictor, "output_0", &view), TENON_INVALID_ARGUMENT,
               "struct_size");
  ASSERT_EQ(tenon_predictor_unbind_inputs(predictor), TENON_OK);
  expect_error(tenon_predictor_run(predictor), TENON_FAILED_PRECONDITION, "missing 'a'");
}

TEST(Predictor, ChecksHandles) {
  expect_error(tenon_predictor_run(nullptr), TENON_INVALID_ARGUMENT,
               "expected a handle of a predictor, got NULL");
  int other = 0;
  expect_error(tenon_predictor_run(reinterpret_cast<tenon_predictor*>(&other)),
               TENON_INVALID_ARGUMENT, "was freed or was never made");
  tenon_config* config = nullptr;
  ASSERT_EQ(tenon_config_create(model("pair").c_str(), &config), TENON_OK);
  expect_error(tenon_predictor_run(reinterpret_cast<tenon_predictor*>(config)),
               TENON_INVALID_ARGUMENT, "expected a handle of a predictor");
  expect_error(tenon_predictor_create(config, nullptr), TENON_INVALID_ARGUMENT,
               "where to put the predictor, got NULL");
  tenon_predictor *predictor = nullptr, *clone = nullptr;
  ASSERT_EQ(tenon_predictor_create(config, &predictor), TENON_OK);
  ASSERT_EQ(tenon_config_free(config), TENON_OK);
  expect_error(tenon_config_free(config), TENON_INVALID_ARGUMENT, "was freed or was never made");
  ASSERT_EQ(tenon_predictor_clone(predictor, &clone), TENON_OK);
  ASSERT_EQ(tenon_predictor_free(predictor), TENON_OK);
  expect_error(tenon_predictor_free(predictor), TENON_INVALID_ARGUMENT, "was freed");
  uint32_t count = 0;
  ASSERT_EQ(tenon_predictor_input_count(clone, &count), TENON_OK);
  EXPECT_EQ(count, 2u);
  ASSERT_EQ(tenon_predictor_free(clone), TENON_OK);
}

TEST(Predictor, ConfigurationKnowsItsKeys) {
  tenon_config* config = nullptr;
  expect_error(tenon_config_create(nullptr, &config), TENON_INVALID_ARGUMENT, "path of a program");
  ASSERT_EQ(tenon_config_create("/nowhere/model.tenon", &config), TENON_OK);
  expect_error(tenon_config_set(config, "warmpu", "recorded"), TENON_NOT_FOUND,
               "there is no key `warmpu`; did you mean `warmup`?; the keys are device, fallback");
  expect_error(tenon_config_set(config, "numerics", "fsat"), TENON_INVALID_ARGUMENT,
               "`numerics`: expected 'exact', 'ulp' or 'fast'; did you mean `fast`?, got 'fsat'");
  expect_error(tenon_config_set(config, "affinity", "0"), TENON_UNSUPPORTED,
               "`affinity` is not there yet: bind the process to processors");
  expect_error(tenon_config_set(config, "threads", "1025"), TENON_INVALID_ARGUMENT,
               "a number of threads from 1 to 1024");
  expect_error(tenon_config_set(config, "spin_us", "-1"), TENON_INVALID_ARGUMENT,
               "a number of microseconds from 0 to 1000000");
  expect_error(tenon_config_set(config, "deadline_ms", "soon"), TENON_INVALID_ARGUMENT,
               "a number of milliseconds");
  expect_error(tenon_config_set(config, "warmup", "x=1x"), TENON_INVALID_ARGUMENT, "got 'x=1x'");
  expect_error(tenon_config_set(config, "profile", nullptr), TENON_INVALID_ARGUMENT, "a value");
  uint32_t planned = 0;
  for (uint32_t i = 0; i < tenon_config_key_count(); ++i) {
    tenon_config_key_info info = {};
    info.struct_size = sizeof info;
    ASSERT_EQ(tenon_config_key(i, &info), TENON_OK);
    EXPECT_GT(std::strlen(info.text), 10u) << info.name;
    const char* value = nullptr;
    ASSERT_EQ(tenon_config_get(config, info.name, &value), TENON_OK);
    EXPECT_STREQ(value, info.default_value);
    // What is not there is refused, whatever the value is.
    if (!info.is_available)
      ++planned,
          expect_error(tenon_config_set(config, info.name, "1"), TENON_UNSUPPORTED, info.name);
    else
      EXPECT_EQ(tenon_config_set(config, info.name, info.default_value), TENON_OK) << info.name;
  }
  EXPECT_GT(planned, 3u);
  tenon_predictor* predictor = nullptr;
  expect_error(tenon_predictor_create(config, &predictor), TENON_NOT_FOUND, "/nowhere/model.tenon");
  ASSERT_EQ(tenon_config_free(config), TENON_OK);
}

TEST(Predictor, RefusesSettingsThatDoNotFitTheProgram) {
  auto error = [](const char* key, const char* value, tenon_status expected, const char* piece) {
    tenon_config* config = nullptr;
    ASSERT_EQ(tenon_config_create(model("classifier").c_str(), &config), TENON_OK);
    ASSERT_EQ(tenon_config_set(config, key, value), TENON_OK);
    tenon_predictor* predictor = nullptr;
    expect_error(tenon_predictor_create(config, &predictor), expected, piece);
    EXPECT_EQ(predictor, nullptr);
    tenon_config_free(config);
  };
  error("device", "nonesuch:0", TENON_NOT_FOUND, "none of the devices is there:\n  nonesuch:0: ");
  error("passes", "nonesuch", TENON_INVALID_ARGUMENT, "passes 'freeze=share,nonesuch': ");
  error("without", "silu", TENON_INVALID_ARGUMENT, "got 'exact'");
  error("warmup", "y=1x8", TENON_NOT_FOUND, "there is no input 'y'");
  error("warmup", "x=99x8", TENON_INVALID_ARGUMENT, "batch goes from 1 to 16");
}

TEST(Predictor, BranchesHaveTheDtypeTheyWereExportedIn) {
  tenon_config* config = nullptr;
  tenon_predictor* predictor = nullptr;
  ASSERT_EQ(tenon_config_create(model("loop").c_str(), &config), TENON_OK);
  ASSERT_EQ(tenon_config_set(config, "dtype", "bfloat16"), TENON_OK);
  expect_error(tenon_predictor_create(config, &predictor), TENON_UNSUPPORTED,
               "`dtype`: the program has branches or loops");
  tenon_config_free(config);
}

TEST(Predictor, SettingsKeepTheResults) {
  const std::vector<float> x = rows(5);
  auto scores = [&](const Handle::Settings& settings) {
    const Handle predictor("classifier", settings);
    EXPECT_EQ(bind(predictor, "x", {5, 8}, x), TENON_OK);
    EXPECT_EQ(tenon_predictor_run(predictor), TENON_OK) << tenon_predictor_error();
    return output(predictor, "scores");
  };
  const std::vector<float> plain = scores({});
  EXPECT_EQ(scores({{"warmup", "recorded; x=5x8"}}), plain);
  EXPECT_EQ(scores({{"device", "nonesuch,cpu"}, {"fallback", "deny"}}), plain);
  EXPECT_EQ(scores({{"passes", "cse,dce"}}), plain);
  const std::vector<float> fast = scores({{"numerics", "fast"}, {"without", "silu"}});
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(fast[i], plain[i], 1e-5);
}

TEST(Predictor, ClonesRunOnThreads) {
  const Handle original("classifier");
  constexpr int kThreads = 4;
  std::vector<std::vector<float>> inputs, expected(kThreads);
  for (int t = 0; t < kThreads; ++t) inputs.push_back(rows(t + 1));
  for (int t = 0; t < kThreads; ++t) {
    ASSERT_EQ(bind(original, "x", {t + 1, 8}, inputs[t]), TENON_OK);
    ASSERT_EQ(tenon_predictor_run(original), TENON_OK);
    expected[t] = output(original, "scores");
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      tenon_predictor* made = nullptr;
      if (tenon_predictor_clone(original, &made) != TENON_OK) return void(++wrong);
      const Handle clone(made);
      if (bind(clone, "x", {t + 1, 8}, inputs[t]) != TENON_OK) return void(++wrong);
      for (int i = 0; i < 200; ++i)
        if (tenon_predictor_run(clone) != TENON_OK || output(clone, "scores") != expected[t])
          ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A run that ends when it is cancelled, or not at all.
class Counting {
 public:
  explicit Counting(tenon_predictor* predictor) : predictor_(predictor) {
    EXPECT_EQ(
        tenon_predictor_bind_input(predictor, "limit", TENON_DTYPE_F32, 0, nullptr, &limit_, 4),
        TENON_OK);
    thread_ = std::thread([this] {
      do {  // others look whether it runs, which takes a turn
        status_ = tenon_predictor_run(predictor_);
      } while (status_ == TENON_FAILED_PRECONDITION);
      text_ = tenon_predictor_error();
    });
  }
  tenon_status join() {
    thread_.join();
    return status_;
  }
  const std::string& text() const { return text_; }

 private:
  float limit_ = 1e9f;  // beyond 2^24, where adding 1 changes nothing
  tenon_predictor* predictor_;
  tenon_status status_ = TENON_OK;
  std::string text_;
  std::thread thread_;
};

TEST(Predictor, OneThreadAtATimeAndCancel) {
  const Handle predictor("loop");
  EXPECT_EQ(tenon_predictor_cancel(predictor), TENON_OK);  // nothing runs
  Counting counting(predictor);
  // Until the other thread is inside, and then all others are told so.
  const char* text = nullptr;
  while (tenon_predictor_program(predictor, &text) == TENON_OK) std::this_thread::yield();
  EXPECT_NE(std::string(tenon_predictor_error()).find("a clone each"), std::string::npos);
  expect_error(tenon_predictor_run(predictor), TENON_FAILED_PRECONDITION,
               "at work for another call");
  expect_error(tenon_predictor_free(predictor), TENON_FAILED_PRECONDITION,
               "free it when that has returned");
  uint32_t count = 0;  // what never changes can be read
  EXPECT_EQ(tenon_predictor_input_count(predictor, &count), TENON_OK);
  EXPECT_EQ(tenon_predictor_cancel(predictor), TENON_OK);  // once: it is under way
  EXPECT_EQ(counting.join(), TENON_CANCELLED);
  EXPECT_NE(counting.text().find("cancelled by tenon_predictor_cancel"), std::string::npos);
  const float three = 3;
  ASSERT_EQ(tenon_predictor_bind_input(predictor, "limit", TENON_DTYPE_F32, 0, nullptr, &three, 4),
            TENON_OK);
  EXPECT_EQ(tenon_predictor_cancel(predictor), TENON_OK);  // of no run, and not of the next
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK) << tenon_predictor_error();
  EXPECT_EQ(output(predictor, "n"), std::vector<float>{3});
}

TEST(Predictor, DeadlinesEndRuns) {
  const Handle predictor("loop", {{"deadline_ms", "20"}});
  Counting counting(predictor);
  EXPECT_EQ(counting.join(), TENON_DEADLINE_EXCEEDED);
  EXPECT_NE(counting.text().find("longer than the deadline_ms of 20"), std::string::npos);
}

struct Seen {
  tenon_predictor* predictor = nullptr;
  std::vector<std::string> names;
  std::vector<float> last;
  uint32_t stop_at = 1000;
  tenon_status inside = TENON_OK;
};

tenon_status see(void* user, const tenon_predictor_step* step, const tenon_predictor_view* results,
                 uint32_t nresults) {
  auto& seen = *static_cast<Seen*>(user);
  seen.names.emplace_back(step->name);
  if (nresults > 0) {
    const auto* data = static_cast<const float*>(results[0].data);
    seen.last.assign(data, data + results[0].bytes / sizeof(float));
  }
  seen.inside = tenon_predictor_run(seen.predictor);
  return step->index == seen.stop_at ? TENON_ABORTED : TENON_OK;
}

TEST(Predictor, HooksSeeEachStep) {
  const Handle predictor("classifier");
  const std::vector<float> x = rows(2);
  Seen seen;
  seen.predictor = predictor;
  ASSERT_EQ(tenon_predictor_set_hook(predictor, see, &seen), TENON_OK);
  ASSERT_EQ(bind(predictor, "x", {2, 8}, x), TENON_OK);
  ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK) << tenon_predictor_error();
  EXPECT_EQ(seen.names, (std::vector<std::string>{"tenon::linear", "tenon::relu", "tenon::linear",
                                                  "tenon::softmax"}));
  EXPECT_EQ(seen.last, output(predictor, "scores"));
  EXPECT_EQ(seen.inside, TENON_FAILED_PRECONDITION);
  seen.stop_at = 1;
  expect_error(tenon_predictor_run(predictor), TENON_ABORTED,
               "the hook ended it behind step 1, tenon::relu");
  ASSERT_EQ(tenon_predictor_set_hook(predictor, nullptr, nullptr), TENON_OK);
  EXPECT_EQ(tenon_predictor_run(predictor), TENON_OK);
}

TEST(Predictor, ExplainsAndProfiles) {
  const Handle predictor("classifier", {{"profile", "true"}});
  const std::vector<float> x = rows(2);
  const char* text = nullptr;
  ASSERT_EQ(tenon_predictor_explain(predictor, &text), TENON_OK) << tenon_predictor_error();
  EXPECT_NE(std::string(text).find("tenon::linear"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("cpu:0"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("results take at most"), std::string::npos) << text;
  ASSERT_EQ(bind(predictor, "x", {2, 8}, x), TENON_OK);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(tenon_predictor_run(predictor), TENON_OK);
  ASSERT_EQ(tenon_predictor_profile(predictor, &text), TENON_OK) << tenon_predictor_error();
  EXPECT_EQ(std::string(text).rfind("3 runs, ", 0), 0u) << text;
  EXPECT_NE(std::string(text).find("3 calls"), std::string::npos) << text;
  ASSERT_EQ(tenon_predictor_program(predictor, &text), TENON_OK);
  EXPECT_EQ(std::string(text).rfind("tenon.program 2\n", 0), 0u) << text;
  const char* value = nullptr;
  ASSERT_EQ(tenon_predictor_setting(predictor, "device", &value), TENON_OK);
  EXPECT_STREQ(value, "cpu:0");
  tenon_predictor_memory_use use = {};
  use.struct_size = sizeof use;
  ASSERT_EQ(tenon_predictor_memory(predictor, &use), TENON_OK);
  EXPECT_EQ(use.weights, (8 * 4 + 4 + 4 * 3 + 3) * sizeof(float));
  uint64_t released = 0;
  ASSERT_EQ(tenon_predictor_shrink_memory(predictor, &released), TENON_OK);
  tenon_predictor_view view = empty_view();
  expect_error(tenon_predictor_output(predictor, "scores", &view), TENON_FAILED_PRECONDITION,
               "there is none");
  const Handle silent("classifier");
  expect_error(tenon_predictor_profile(silent, &text), TENON_FAILED_PRECONDITION,
               "set the key `profile` to true");
}

TEST(Predictor, ErrorsAreOfTheirThread) {
  expect_error(tenon_predictor_run(nullptr), TENON_INVALID_ARGUMENT, "got NULL");
  std::string other = "?";
  std::thread([&] { other = tenon_predictor_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_STREQ(tenon_predictor_status_name(17), "TYPE_MISMATCH");
  EXPECT_EQ(tenon_predictor_status_name(18), nullptr);
  EXPECT_EQ(tenon_predictor_dtype_find("float32"), TENON_DTYPE_F32);
  EXPECT_EQ(tenon_predictor_dtype_find("float31"), -1);
  EXPECT_EQ(tenon_predictor_dtype_name(-1), nullptr);
  EXPECT_EQ(tenon_predictor_dtype_size(TENON_DTYPE_I64), 8u);
  expect_error(tenon_predictor_set_process_threads(0), TENON_INVALID_ARGUMENT, "at least 1");
  const int32_t threads = tenon_predictor_process_threads();
  EXPECT_GE(threads, 1);
  EXPECT_EQ(tenon_predictor_set_process_threads(threads), TENON_OK);
}

// How many packed weights executables read, and how many of these the file holds.
std::pair<std::string, std::string> packed_weights(tenon_predictor* predictor) {
  const char* explained = nullptr;
  EXPECT_EQ(tenon_predictor_explain(predictor, &explained), TENON_OK);
  const std::string text = explained;
  const std::string first = "packed weights: ", second = "of which the file holds ";
  const size_t begin = text.find(first) + first.size(), end = text.find(second) + second.size();
  return {text.substr(begin, text.find(',', begin) - begin),
          text.substr(end, text.find('\n', end) - end)};
}

TEST(Predictor, MapsPackedWeightsThatItHasSaved) {
  const std::string path = testing::TempDir() + "/tenon_packed_" + std::to_string(getpid());
  std::vector<float> image(8 * 16 * 16);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 17) / 8 - 1;
  const Handle plain("filters");
  ASSERT_EQ(bind(plain, "x", {1, 8, 16, 16}, image), TENON_OK);
  ASSERT_EQ(tenon_predictor_run(plain), TENON_OK);
  ASSERT_EQ(tenon_predictor_save_optimized(plain, path.c_str()), TENON_OK)
      << tenon_predictor_error();
  // What is bound, and the outputs of the last run, stayed.
  const std::vector<float> expected = output(plain, "y");
  const auto [count, none] = packed_weights(plain);
  EXPECT_GT(std::stoi(count), 0);
  EXPECT_EQ(none, "0");
  tenon_config* config = nullptr;
  tenon_predictor* made = nullptr;
  ASSERT_EQ(tenon_config_create(path.c_str(), &config), TENON_OK);
  ASSERT_EQ(tenon_predictor_create(config, &made), TENON_OK) << tenon_predictor_error();
  std::remove(path.c_str());
  const Handle packed(made);
  tenon_predictor* cloned = nullptr;
  ASSERT_EQ(tenon_predictor_clone(packed, &cloned), TENON_OK);
  const Handle clone(cloned);
  for (tenon_predictor* each : {made, cloned}) {
    ASSERT_EQ(bind(each, "x", {1, 8, 16, 16}, image), TENON_OK);
    ASSERT_EQ(tenon_predictor_run(each), TENON_OK);
    EXPECT_EQ(output(each, "y"), expected);
    EXPECT_EQ(packed_weights(each), std::make_pair(count, count));
  }
  expect_error(tenon_predictor_save_optimized(packed, nullptr), TENON_INVALID_ARGUMENT,
               "expected a path, got NULL");
  expect_error(tenon_predictor_save_optimized(packed, "/none/x.tenon"), TENON_NOT_FOUND,
               "save: /none/x.tenon: ");
  EXPECT_EQ(tenon_config_free(config), TENON_OK);
}

}  // namespace
}  // namespace tenon::test
