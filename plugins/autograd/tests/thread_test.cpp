// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "support.hpp"

namespace tenon::test {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 200;

void on_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, DifferentGraphs) {
  on_threads([](int index) {
    for (int round = 0; round < kRounds; ++round) {
      Tensor x = parameter({static_cast<double>(index)});
      Tensor y = x;
      for (int i = 0; i < 10; ++i) y = y + x;
      backward(y);
      EXPECT_EQ(grad_values(x), Values{11});
    }
  });
}

TEST(Threads, SharedLeaves) {
  Tensor x = parameter({1, 2, 3});
  on_threads([&](int) {
    for (int round = 0; round < kRounds; ++round) backward(sum(x * x));
  });
  double count = kThreads * kRounds;
  EXPECT_EQ(grad_values(x), (Values{2 * count, 4 * count, 6 * count}));
}

TEST(Threads, GradientsOfSharedLeaves) {
  Tensor x = parameter({2});
  on_threads([&](int) {
    for (int round = 0; round < kRounds; ++round)
      EXPECT_EQ(values(gradients(x * x, {x})[0]), Values{4});
  });
  EXPECT_EQ(grad(x), nullptr);
}

TEST(Threads, GraphMadeOnOneFreedOnAnother) {
  for (int round = 0; round < 20; ++round) {
    Tensor x = parameter({1}), y = x;
    for (int i = 0; i < 1000; ++i) y = y * x;
    std::thread([y = std::move(y)]() mutable { y = {}; }).join();
  }
}

TEST(Threads, SharedTrunkIsRefusedOrDone) {
  // Two threads in one graph at once: a clear error for one of them, never a wrong gradient.
  Tensor x = parameter({1});
  Tensor y = x;
  for (int i = 0; i < 200; ++i) y = y + vector({0});
  std::atomic<int> done{0};
  on_threads([&](int) {
    for (int round = 0; round < 20; ++round) {
      std::string error = error_of([&] { backward(y + y, TENON_BACKWARD_RETAIN_GRAPH); });
      if (error.empty())
        ++done;
      else
        EXPECT_NE(error.find("is being differentiated already"), std::string::npos) << error;
    }
  });
  EXPECT_EQ(values(grad(x)), Values{2.0 * done});
}

TEST(Threads, RecordingIsSwitchedPerThread) {
  NoGrad off;
  std::thread([] { EXPECT_TRUE(autograd->enabled()); }).join();
  EXPECT_FALSE(autograd->enabled());
}

}  // namespace
}  // namespace tenon::test
