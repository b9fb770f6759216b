// SPDX-License-Identifier: Apache-2.0
// Ranks that differ, leave, wait for too long, or end their groups from another thread.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <tenon/error.hpp>
#include <thread>

#include "support.hpp"

namespace tenon::collectives::test {
namespace {

class Faults : public testing::TestWithParam<const char*> {};

void add(RankGroup& group, size_t count) {
  std::vector<int64_t> buffer(count, 1);
  group.run(call_of(TENON_CALL_ALL_REDUCE, buffer.data(), buffer.data(), count));
}

TEST_P(Faults, RanksThatDifferAllHearTheSame) {
  const Transport transport(GetParam());
  for (const size_t count : {3, 30'000}) {
    const auto texts = run_ranks(3, [&](RankGroup& group) {
      add(group, count);
      add(group, count + static_cast<size_t>(group.rank() == 1));
      FAIL() << "ranks that differ went on";
    });
    expect_says(texts[0], "call 2 of world: ranks 0, 2 all_reduce(int64[" + std::to_string(count) +
                              "], sum) at train.py:88; rank 1");
    EXPECT_EQ(texts[1], texts[0]);
    EXPECT_EQ(texts[2], texts[0]);
  }
}

TEST_P(Faults, AnotherThreadEndsCallsThatWait) {
  const Transport transport(GetParam());
  const auto texts = run_ranks(3, [](RankGroup& group) {
    if (group.rank() > 0) return add(group, 8);
    std::vector<int64_t> buffer(8);
    const auto work = group.start(call_of(TENON_CALL_ALL_REDUCE, buffer.data(), buffer.data(), 4));
    group.meeting().fail(TENON_COLLECTIVE_ABORTED, "no longer wanted");
    work->wait(60 * kSecond);
    EXPECT_NE(work->status(), TENON_OK);
    group.meeting().check();
  });
  // Counts differ so that no call can end before it is ended. A rank may see that first.
  for (const std::string& text : texts)
    EXPECT_TRUE(text == "no longer wanted" ||
                text.starts_with("expected all ranks to make the same call"))
        << text;
}

TEST_P(Faults, ARankThatLeavesIsNamed) {
  const Transport transport(GetParam());
  const auto texts = run_ranks(3, [](RankGroup& group) {
    add(group, 8);
    if (group.rank() != 1) add(group, 8);
  });
  EXPECT_EQ(texts[1], "");
  for (const size_t rank : {0, 2})
    expect_says(texts[rank], "rank 1 is gone: it left its groups after call 1");
}

TEST_P(Faults, WhoWaitsForTooLongSaysForWhom) {
  const Transport transport(GetParam());
  std::atomic<int> waiting = 2;
  const auto texts = run_ranks(
      3,
      [&](RankGroup& group) {
        add(group, 8);
        if (group.rank() == 1) {
          while (waiting > 0) std::this_thread::yield();
          return;
        }
        try {
          add(group, 8);
        } catch (...) {
          --waiting;
          throw;
        }
      },
      kSecond * 3 / 2);
  for (const size_t rank : {0, 2}) expect_says(texts[rank], "waited 1.5 s in call 2 of world");
}

TEST_P(Faults, AGroupWithCallsUnderWayIsClosed) {
  const Transport transport(GetParam());
  std::vector<int64_t> buffers[3] = {std::vector<int64_t>(70'000), std::vector<int64_t>(70'000),
                                     std::vector<int64_t>(70'000)};
  const auto texts = run_ranks(3, [&](RankGroup& group) {
    std::vector<int64_t>& buffer = buffers[group.rank()];
    for (int i = 0; i < 3; ++i)
      group.start(call_of(TENON_CALL_ALL_REDUCE, buffer.data(), buffer.data(), buffer.size()));
  });
  for (const std::string& text : texts) EXPECT_EQ(text, "");
}

TEST_P(Faults, ACopyOfTheProcessIsNoRank) {
  const Transport transport(GetParam());
  const auto texts = run_ranks(2, [](RankGroup& group) {
    add(group, 8);
    if (group.rank() == 1) {
      const pid_t copy = fork();
      if (copy == 0) {
        try {
          add(group, 8);
        } catch (const Error& error) {
          _exit(error.code() == TENON_FAILED_PRECONDITION ? 7 : 8);
        }
        _exit(9);
      }
      int status = 0;
      waitpid(copy, &status, 0);
      EXPECT_EQ(WEXITSTATUS(status), 7);
    }
    add(group, 8);
  });
  for (const std::string& text : texts) EXPECT_EQ(text, "");
}

INSTANTIATE_TEST_SUITE_P(Transports, Faults, testing::Values("", "tcp"),
                         [](const auto& info) { return *info.param ? "tcp" : "memory"; });

TEST(Meetings, RanksThatComeTwiceOrCountDifferentlyAreRefused) {
  LocalStore store;
  const auto alone = join(store, 0, 1);
  try {
    join(store, 0, 1);
    ADD_FAILURE() << "a rank came twice";
  } catch (const Error& error) {
    expect_says(error.what(), "rank 0 of world has come twice");
  }
  std::thread first([&] {
    try {
      join(store, 0, 3, kSecond * 3, "sizes");
      ADD_FAILURE() << "met too few ranks";
    } catch (const Error& error) {
      expect_says(error.what(), "rank 0 of 3 waited 3 s for ranks [1, 2]");
    }
  });
  try {
    join(store, 1, 2, kSecond * 3, "sizes");
    ADD_FAILURE() << "met a rank of a larger group";
  } catch (const Error& error) {
    expect_says(error.what(), "rank 1 of 2 met rank 0 of 3; sizes must be equal");
  }
  first.join();
}

}  // namespace
}  // namespace tenon::collectives::test
