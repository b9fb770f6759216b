// SPDX-License-Identifier: Apache-2.0
// What every call moves, on both transports, from the program's threads and from the group's own.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>
#include <tenon/error.hpp>
#include <thread>

#include "support.hpp"

namespace tenon::collectives::test {
namespace {

using Numbers = std::vector<int64_t>;

void expect_none(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) EXPECT_EQ(text, "");
}

// What rank `rank` has at place `place`: no two are equal.
int64_t number(int32_t rank, size_t place) { return static_cast<int64_t>(place) * 100 + rank + 1; }
Numbers numbers(int32_t rank, size_t count, size_t from = 0) {
  Numbers result(count);
  for (size_t i = 0; i < count; ++i) result[i] = number(rank, from + i);
  return result;
}
Numbers sums(int32_t size, size_t count, size_t from = 0) {
  Numbers result(count);
  for (int32_t rank = 0; rank < size; ++rank)
    for (size_t i = 0; i < count; ++i) result[i] += number(rank, from + i);
  return result;
}
Numbers joined(int32_t size, size_t count, size_t from = 0) {
  Numbers result;
  for (int32_t rank = 0; rank < size; ++rank)
    for (const int64_t value : numbers(rank, count, from)) result.push_back(value);
  return result;
}

// Carries out a call, which is started and waited for if `is_started`.
void carry_out(RankGroup& group, const tenon_group_call& call, bool is_started) {
  if (!is_started) return group.run(call);
  const auto work = group.start(call);
  ASSERT_TRUE(work->wait(60 * kSecond));
  if (work->status() != TENON_OK) throw Error(work->status(), work->text());
}

void every_call(RankGroup& group, size_t count, bool is_started) {
  const int32_t rank = group.rank(), size = group.size(), last = size - 1;
  const size_t ranks = static_cast<size_t>(size), mine = static_cast<size_t>(rank) * count;
  const auto call = [&](int32_t kind, const void* src, void* dst, int32_t root = 0) {
    carry_out(group, call_of(kind, src, dst, count, TENON_DTYPE_I64, root), is_started);
  };
  Numbers own = numbers(rank, count), out(count), wide(count * ranks);
  call(TENON_CALL_ALL_REDUCE, own.data(), out.data());
  EXPECT_EQ(out, sums(size, count));
  call(TENON_CALL_ALL_REDUCE, own.data(), own.data());
  EXPECT_EQ(own, sums(size, count));
  own = numbers(rank, count);
  call(TENON_CALL_ALL_GATHER, own.data(), wide.data());
  EXPECT_EQ(wide, joined(size, count));
  out.assign(count, -1);
  call(TENON_CALL_REDUCE, own.data(), rank == last ? out.data() : nullptr, last);
  EXPECT_EQ(out, rank == last ? sums(size, count) : Numbers(count, -1));
  const Numbers all = numbers(rank, count * ranks);
  call(TENON_CALL_REDUCE_SCATTER, all.data(), out.data());
  EXPECT_EQ(out, sums(size, count, mine));
  out = numbers(rank, count);
  call(TENON_CALL_BROADCAST, out.data(), out.data(), last);
  EXPECT_EQ(out, numbers(last, count));
  carry_out(group, call_of(TENON_CALL_BARRIER, nullptr, nullptr, 0), is_started);

  std::vector<tenon_transfer> list;
  for (int32_t peer = 0; peer < size; ++peer) {
    const size_t place = static_cast<size_t>(peer) * count;
    list.push_back({TENON_TRANSFER_SEND, peer, const_cast<int64_t*>(all.data()) + place, count});
    list.push_back({TENON_TRANSFER_RECV, peer, wide.data() + place, count});
  }
  carry_out(group, list_of(TENON_CALL_ALL_TO_ALL, list), is_started);
  EXPECT_EQ(wide, joined(size, count, mine));
  // A ring of messages, forward and back.
  const int32_t next = (rank + 1) % size, before = (rank + size - 1) % size;
  Numbers from_before(count), from_next(count);
  list = {{TENON_TRANSFER_SEND, next, own.data(), count},
          {TENON_TRANSFER_SEND, before, own.data(), count},
          {TENON_TRANSFER_RECV, before, from_before.data(), count},
          {TENON_TRANSFER_RECV, next, from_next.data(), count}};
  if (size > 2) {
    carry_out(group, list_of(TENON_CALL_EXCHANGE, list), is_started);
    EXPECT_EQ(from_before, numbers(before, count));
    EXPECT_EQ(from_next, numbers(next, count));
  }
}

class Calls : public testing::TestWithParam<const char*> {};

TEST_P(Calls, MoveWhatTheySay) {
  const Transport transport(GetParam());
  for (const int32_t size : {1, 2, 3, 4})
    expect_none(run_ranks(size, [](RankGroup& group) {
      for (const size_t count : {0, 1, 511, 4097, 70'000})
        for (const bool is_started : {false, true}) every_call(group, count, is_started);
    }));
}

// Calls that were started are carried out in order, while others are run behind them.
TEST_P(Calls, StartedAndRunCallsKeepTheirOrder) {
  const Transport transport(GetParam());
  expect_none(run_ranks(3, [](RankGroup& group) {
    std::mt19937 random(7);  // the same calls on all ranks
    constexpr size_t kCalls = 120;
    std::vector<Numbers> buffers;
    std::vector<int64_t> expected;
    std::vector<std::shared_ptr<tenon::collectives::Work>> works;
    for (size_t i = 0; i < kCalls; ++i) {
      buffers.emplace_back(1 + random() % 3000, static_cast<int64_t>(i));
      expected.push_back(static_cast<int64_t>(i) * 3);
    }
    for (Numbers& buffer : buffers) {
      const auto call = call_of(TENON_CALL_ALL_REDUCE, buffer.data(), buffer.data(), buffer.size());
      if (random() % 3)
        works.push_back(group.start(call));
      else
        group.run(call);
    }
    for (const auto& work : works) {
      ASSERT_TRUE(work->wait(60 * kSecond));
      ASSERT_EQ(work->status(), TENON_OK) << work->text();
    }
    for (size_t i = 0; i < kCalls; ++i)
      EXPECT_EQ(buffers[i], Numbers(buffers[i].size(), expected[i]));
  }));
}

// Messages that were started one behind the other are on their way together: both ends send first.
TEST_P(Calls, MessagesThatBothSendFirst) {
  const Transport transport(GetParam());
  expect_none(run_ranks(2, [](RankGroup& group) {
    const int32_t other = 1 - group.rank();
    constexpr size_t kCount = 1 << 18;  // more than fits between two ranks
    std::vector<Numbers> sent, got;
    std::vector<std::shared_ptr<tenon::collectives::Work>> works;
    std::vector<std::vector<tenon_transfer>> lists;
    for (size_t i = 0; i < 4; ++i) {
      sent.push_back(numbers(group.rank(), kCount, i));
      got.emplace_back(kCount);
    }
    for (size_t i = 0; i < 4; ++i)
      lists.push_back({{TENON_TRANSFER_SEND, other, sent[i].data(), kCount}});
    for (size_t i = 0; i < 4; ++i)
      lists.push_back({{TENON_TRANSFER_RECV, other, got[i].data(), kCount}});
    for (const auto& list : lists) works.push_back(group.start(list_of(TENON_CALL_EXCHANGE, list)));
    for (const auto& work : works) {
      ASSERT_TRUE(work->wait(60 * kSecond));
      ASSERT_EQ(work->status(), TENON_OK) << work->text();
    }
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i], numbers(other, kCount, i));
  }));
}

// A group and its parts are used by different threads of a rank at the same time, and looked at by another.
TEST_P(Calls, GroupsOfOneMeetingAreUsedByDifferentThreads) {
  const Transport transport(GetParam());
  expect_none(run_ranks(4, [](RankGroup& group) {
    const int32_t parity = group.rank() % 2;
    const auto part =
        group.part("part", parity ? std::vector<int32_t>{1, 3} : std::vector<int32_t>{2, 0});
    ASSERT_TRUE(part);
    EXPECT_EQ(part->rank(), parity ? group.rank() / 2 : 1 - group.rank() / 2);
    std::atomic<bool> is_over = false;
    std::thread looks([&] {
      std::vector<tenon_group_record> records(2048);
      tenon_group_peer peers[4];
      while (!is_over) {
        group.meeting().records().copy(records.data(), 2048);
        group.meeting().copy_peers(peers, 4);
        group.counters();
        part->counters();
        std::this_thread::yield();
      }
    });
    const auto add = [](RankGroup& where, int64_t expected) {
      for (int64_t i = 0; i < 50; ++i) {
        Numbers buffer(static_cast<size_t>(1 + 97 * i), 1);
        where.run(call_of(TENON_CALL_ALL_REDUCE, buffer.data(), buffer.data(), buffer.size()));
        EXPECT_EQ(buffer, Numbers(buffer.size(), expected));
      }
    };
    std::thread other([&] { add(*part, 2); });
    add(group, 4);
    other.join();
    is_over = true;
    looks.join();
  }));
}

// Sums are made in the order of ranks, whatever the transport and the number of elements: the same bits.
TEST_P(Calls, SumsHaveTheBitsOfOneOrder) {
  const Transport transport(GetParam());
  constexpr size_t kCount = 70'001;
  const auto value = [](int32_t rank, size_t i) {
    return 1.0f / static_cast<float>(3 + rank + static_cast<int32_t>(i % 1009));
  };
  expect_none(run_ranks(4, [&](RankGroup& group) {
    std::vector<float> own(kCount), expected(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      own[i] = value(group.rank(), i);
      expected[i] = ((value(0, i) + value(1, i)) + value(2, i)) + value(3, i);
    }
    for (const size_t count : {size_t{5}, kCount}) {
      std::vector<float> out(count);
      group.run(call_of(TENON_CALL_ALL_REDUCE, own.data(), out.data(), count, TENON_DTYPE_F32));
      EXPECT_EQ(memcmp(out.data(), expected.data(), count * sizeof(float)), 0);
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Transports, Calls, testing::Values("", "tcp"),
                         [](const auto& info) { return *info.param ? "tcp" : "memory"; });

}  // namespace
}  // namespace tenon::collectives::test
