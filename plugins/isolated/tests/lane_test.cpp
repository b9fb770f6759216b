// SPDX-License-Identifier: Apache-2.0
#include "wire/lane.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

namespace tenon::isolated {
namespace {

TEST(Lane, CarriesRequestsBackAndForth) {
  auto lane = std::make_unique<Lane>();
  constexpr uint32_t kRounds = 2000;
  std::thread other([&] {
    for (uint32_t answered = 0; answered < kRounds; ++answered) {
      ASSERT_TRUE(
          wait_for_change(lane->asked, lane->process_sleeps, answered, Patience::kSpinFirst, 0));
      // Now and then longer than the other side spins.
      if (answered % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      lane->message_bytes *= 2;
      change(lane->answered, lane->program_sleeps, answered + 1);
    }
  });
  for (uint32_t number = 1; number <= kRounds; ++number) {
    lane->message_bytes = number;
    change(lane->asked, lane->process_sleeps, number);
    ASSERT_TRUE(
        wait_for_change(lane->answered, lane->program_sleeps, number - 1, Patience::kSpinFirst, 0));
    ASSERT_EQ(lane->message_bytes, 2 * number);
  }
  other.join();
}

TEST(Lane, WaitsNoLongerThanAsked) {
  auto lane = std::make_unique<Lane>();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(
      wait_for_change(lane->answered, lane->program_sleeps, 0, Patience::kSpinFirst, 20'000'000));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
}

TEST(Lane, WakesWhoWaitsWhenTheProcessIsGone) {
  auto lane = std::make_unique<Lane>();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    announce_end(*lane);
  });
  EXPECT_TRUE(wait_for_change(lane->answered, lane->program_sleeps, 0, Patience::kSleep, 0));
  EXPECT_EQ(lane->answered.load(), kGone);
  other.join();
}

}  // namespace
}  // namespace tenon::isolated
