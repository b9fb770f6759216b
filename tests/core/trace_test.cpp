// SPDX-License-Identifier: Apache-2.0
// The allocator under the allocations of whole training runs. Counts, not times.
#include <gtest/gtest.h>

#include "tests/core/growing_host.hpp"
#include "tests/core/trace_replay.hpp"

namespace tenon::test {
namespace {

struct Fixed {};
struct Varying {};
struct LongestFirst {};
struct JoinedFixed {};
struct JoinedVarying {};
struct JoinedLongestFirst {};
struct GrowingFixed {};
struct GrowingVarying {};
struct GrowingLongestFirst {};

TEST(AllocationTrace, StepsRepeatOnceTheOptimizerHasItsState) {
  TraceRecorder recorder;
  auto model = traced_resnet18(recorder);
  auto sizes = [&] {
    model->step(4);
    std::vector<uint64_t> bytes;
    for (const TraceEvent& event : recorder.take_events()) bytes.push_back(event.bytes);
    return bytes;
  };
  size_t first = sizes().size();
  std::vector<uint64_t> second = sizes();
  EXPECT_LT(second.size(), first);
  EXPECT_EQ(sizes(), second);
}

// One training run of equal batches.
template <class Driver>
double equal_batches(const char* kind) {
  TraceRecorder recorder;
  auto model = traced_resnet18(recorder);
  TraceReplay replay(Driver::device(kind));
  uint64_t calls = 0;
  for (int step = 0; step < 300; ++step) {
    if (step == 10) calls = Driver::calls;
    model->step(32);
    EXPECT_TRUE(replay.run(recorder.take_events()));
  }
  EXPECT_EQ(Driver::calls, calls);
  return replay.fragmentation();
}

TEST(AllocationTrace, EqualBatchesWasteLittleAndSoonNeedNoDriver) {
  EXPECT_LT(equal_batches<AddressDevice<Fixed>>("fakefixed"), 0.05);
}

// One training run of varying lengths, the longest among them from the start or whenever it comes.
template <class Driver>
double varying_lengths(const char* kind, bool longest_first) {
  TraceRecorder recorder;
  auto model = traced_gpt(recorder);
  TraceReplay replay(Driver::device(kind));
  std::mt19937 random(1);
  uint64_t calls = 0;
  for (int step = 0; step < 1000; ++step) {
    if (step == 500) calls = Driver::calls;
    model->step(longest_first && step == 0 ? 1024 : 64 + random() % 961);
    EXPECT_TRUE(replay.run(recorder.take_events()));
  }
  EXPECT_EQ(Driver::calls, calls);
  return replay.fragmentation();
}

TEST(AllocationTrace, VaryingLengthsNeedNoDriverOnceTheLongestWasSeen) {
  // Where segments lie apart, each record of the largest tensor may leave a hole of its old size.
  EXPECT_LT(varying_lengths<AddressDevice<Varying>>("fakevarying", false), 0.20);
  EXPECT_LT(varying_lengths<AddressDevice<LongestFirst>>("fakelongest", true), 0.06);
}

TEST(AllocationTrace, MemoryOfADeviceThatMayBeJoinedHasFewHoles) {
  EXPECT_LT((equal_batches<AddressDevice<JoinedFixed, true>>("fakejoined")), 0.05);
  EXPECT_LT((varying_lengths<AddressDevice<JoinedVarying, true>>("fakejoinvary", false)), 0.05);
  EXPECT_LT((varying_lengths<AddressDevice<JoinedLongestFirst, true>>("fakejoinlong", true)), 0.05);
}

#if !defined(__SANITIZE_ADDRESS__)  // which would note each of these many gigabytes
TEST(AllocationTrace, MemoryThatGrowsInPlaceHasFewHoles) {
  EXPECT_LT(equal_batches<GrowingHost<GrowingFixed>>("growfixed"), 0.05);
  EXPECT_LT(varying_lengths<GrowingHost<GrowingVarying>>("growvarying", false), 0.05);
  EXPECT_LT(varying_lengths<GrowingHost<GrowingLongestFirst>>("growlongest", true), 0.05);
}
#endif

}  // namespace
}  // namespace tenon::test
