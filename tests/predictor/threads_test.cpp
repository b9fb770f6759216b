// SPDX-License-Identifier: Apache-2.0
// Clones on many threads at once, with pools of their own and with the process's. ThreadSanitizer sees more (scripts/sanitize.sh tsan).
#include <atomic>
#include <thread>

#include "support.hpp"

namespace tenon::test {
namespace {

constexpr int kThreads = 8, kRuns = 25;
constexpr size_t kPixels = 8 * 16 * 16;

std::vector<float> image(int number) {
  std::vector<float> made(kPixels);
  for (size_t i = 0; i < kPixels; ++i)
    made[i] = static_cast<float>((i * 7 + static_cast<size_t>(number) * 13) % 31) / 31 - 0.5f;
  return made;
}

bool runs(tenon_predictor* predictor, const std::vector<float>& x, const std::vector<float>& y) {
  return bind(predictor, "x", {1, 8, 16, 16}, x) == TENON_OK &&
         tenon_predictor_run(predictor) == TENON_OK && output(predictor, "y") == y;
}

// Every thread clones, runs its clone on an image of its own, clones that one and frees both, while the others do.
void expect_same_from_clones(const Handle::Settings& settings) {
  std::vector<std::vector<float>> images, expected;
  const Handle single("filters", {{"threads", "1"}});
  for (int i = 0; i < kThreads; ++i) {
    images.push_back(image(i));
    ASSERT_EQ(bind(single, "x", {1, 8, 16, 16}, images.back()), TENON_OK);
    ASSERT_EQ(tenon_predictor_run(single), TENON_OK) << tenon_predictor_error();
    expected.push_back(output(single, "y"));
  }
  const Handle original("filters", settings);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      tenon_predictor *made = nullptr, *second = nullptr;
      if (tenon_predictor_clone(original, &made) != TENON_OK) return void(++wrong);
      const Handle clone(made);
      for (int run = 0; run < kRuns; ++run) wrong += !runs(clone, images[i], expected[i]);
      if (tenon_predictor_clone(clone, &second) != TENON_OK) return void(++wrong);
      const Handle other(second);
      wrong += !runs(other, images[i], expected[i]);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(PredictorThreads, ClonesShareThePool) { expect_same_from_clones({}); }

TEST(PredictorThreads, ClonesHavePoolsOfTheirOwn) { expect_same_from_clones({{"threads", "2"}}); }

TEST(PredictorThreads, PoolsThatSpin) {
  expect_same_from_clones({{"threads", "3"}, {"spin_us", "50"}});
}

// Predictors of one file that are made and freed while others run.
TEST(PredictorThreads, ModelsLoadWhileOthersRun) {
  const std::vector<float> x = image(0);
  std::vector<float> expected;
  {
    const Handle single("filters", {{"threads", "1"}});
    ASSERT_EQ(bind(single, "x", {1, 8, 16, 16}, x), TENON_OK);
    ASSERT_EQ(tenon_predictor_run(single), TENON_OK);
    expected = output(single, "y");
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 3; ++turn) {
        const Handle own("filters", {{"threads", i % 2 ? "2" : "1"}});
        wrong += !runs(own, x, expected);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tenon::test
