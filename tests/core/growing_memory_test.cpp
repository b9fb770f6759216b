// SPDX-License-Identifier: Apache-2.0
// Host memory that a plugin gives end to end is one segment, which grows in place.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "tests/core/allocations.hpp"
#include "tests/core/fake_device.hpp"
#include "tests/core/growing_host.hpp"
#include "tests/core/trace_replay.hpp"

namespace tenon::test {
namespace {

// One fake kind each.
struct Growing {};
struct GrowingSmall {};

// What memory that comes end to end looks like: pieces of 20, 12 and 12 MiB, all in use.
struct GrownHost {
  using Driver = GrowingHost<Growing>;
  Device& device = Driver::device("fakegrowing");
  DeviceMemory& memory = DeviceMemory::of(device);
  FakeState& state = Fake<Growing>::state();
  void* blocks[4];

  GrownHost() {
    trim(device);
    blocks[0] = take(device, 8 * kMiB);
    blocks[1] = take(device, 12 * kMiB);
    blocks[2] = take(device, 12 * kMiB);
    blocks[3] = take(device, 12 * kMiB);
    EXPECT_EQ(state.live.size(), 3u);
    EXPECT_EQ(memory.summary().reserved, 44 * kMiB);
    EXPECT_EQ(memory.summary().segments, 1u);
  }
  ~GrownHost() {
    trim(device);
    EXPECT_TRUE(state.live.empty());
    EXPECT_EQ(state.wrong_frees, 0u);
    EXPECT_EQ(memory.summary().reserved, 0u);
  }
  void give(int i) { deallocate(device, blocks[i], i == 0 ? 8 * kMiB : 12 * kMiB, nullptr); }
};

TEST(GrowingMemory, GrowsInPlaceByWhatIsMissing) {
  GrownHost host;
  host.give(3);
  void* larger = take(host.device, 30 * kMiB);
  EXPECT_EQ(larger, host.blocks[3]);
  EXPECT_EQ(host.memory.summary().reserved, 64 * kMiB);  // by 18, in steps of 4
  for (int i = 0; i < 3; ++i) host.give(i);
  // Free blocks are one, whatever the pieces.
  EXPECT_EQ(take(host.device, 31 * kMiB), host.blocks[0]);
  EXPECT_EQ(host.memory.summary().reserved, 64 * kMiB);
  deallocate(host.device, host.blocks[0], 31 * kMiB, nullptr);
  deallocate(host.device, larger, 30 * kMiB, nullptr);
}

TEST(GrowingMemory, GivesBackPiecesFromAnywhere) {
  for (int kept = 0; kept < 4; ++kept) {
    GrownHost host;
    for (int i = 0; i < 4; ++i)
      if (i != kept) host.give(i);
    EXPECT_EQ(trim(host.device), kept < 2 ? 24 * kMiB : 32 * kMiB);
    EXPECT_EQ(host.state.live.size(), 1u);
    // The rest works on, and is joined with what comes behind it.
    std::memset(host.blocks[kept], kept, 12 * kMiB - (kept == 0) * 4 * kMiB);
    void* next = take(host.device, 16 * kMiB);
    std::memset(next, 0, 16 * kMiB);
    deallocate(host.device, next, 16 * kMiB, nullptr);
    host.give(kept);
  }
}

TEST(GrowingMemory, GivesBackNoMoreThanIsAboveTheCacheLimit) {
  using Driver = GrowingHost<GrowingSmall>;
  Driver::memory_bytes = 1024 * kMiB;
  Device& device = Driver::device("fakegrowsmall");
  void* blocks[4];
  for (void*& data : blocks) data = take(device, 100 * kMiB);
  EXPECT_EQ(DeviceMemory::of(device).summary().segments, 1u);
  for (void* data : blocks) deallocate(device, data, 100 * kMiB, nullptr);
  EXPECT_EQ(DeviceMemory::of(device).summary().reserved,
            200 * kMiB);  // 300 are more than a quarter
  EXPECT_EQ(Fake<GrowingSmall>::state().wrong_frees, 0u);
  trim(device);
}

TEST(GrowingMemory, SplitsWhatGrewWhereAPieceGoes) {
  GrownHost host;
  host.give(2);
  EXPECT_EQ(trim(host.device), 12 * kMiB);
  EXPECT_EQ(host.memory.summary().segments, 2u);
  EXPECT_EQ(host.state.live.count(host.blocks[2]), 0u);
  for (int i : {0, 1, 3}) host.give(i);
  EXPECT_EQ(host.memory.summary().largest_free, 20 * kMiB);
}

TEST(GrowingMemory, KnowsThePiecesThatABlockLiesIn) {
  GrownHost host;
  auto origin = [&](void* data) {
    void* memory = nullptr;
    uint64_t bytes = 0;
    EXPECT_EQ(host.memory.find_origin(data, &memory, &bytes, nullptr), TENON_OK);
    return std::pair(memory, bytes);
  };
  EXPECT_EQ(origin(host.blocks[0]), std::pair(host.blocks[0], 20 * kMiB));
  EXPECT_EQ(origin(host.blocks[1]), std::pair(host.blocks[0], 20 * kMiB));
  EXPECT_EQ(origin(host.blocks[2]), std::pair(host.blocks[2], 12 * kMiB));
  host.give(3);
  host.give(2);
  void* across = take(host.device, 16 * kMiB);
  EXPECT_EQ(origin(across), std::pair(host.blocks[2], 24 * kMiB));
  deallocate(host.device, across, 16 * kMiB, nullptr);
  for (int i : {0, 1}) host.give(i);
}

TEST(GrowingMemory, StartsAnewWhereMemoryIsNotInPlace) {
  GrownHost host;
  host.give(3);
  GrownHost::Driver::gap = 2 * kMiB;
  void* larger = take(host.device, 30 * kMiB);
  EXPECT_NE(larger, host.blocks[3]);
  std::memset(larger, 0, 30 * kMiB);
  deallocate(host.device, larger, 30 * kMiB, nullptr);
  for (int i = 0; i < 3; ++i) host.give(i);
}

struct Joined {};
struct Apart {};

TEST(JoinedMemory, GrowsInPlaceForEachStreamAlone) {
  Device& device = AddressDevice<Joined, true>::device("fakejoin");
  DeviceMemory& memory = DeviceMemory::of(device);
  tenon_stream stream;
  ASSERT_EQ(slots::stream_create(device.id, 0, &stream, nullptr), TENON_OK);
  void* a = take(device, 20 * kMiB);
  void* b = take(device, 20 * kMiB);
  EXPECT_EQ(memory.summary().segments, 1u);
  void* other = take(device, 20 * kMiB, stream);  // lies behind, and is another stream's
  EXPECT_EQ(memory.summary().segments, 2u);
  deallocate(device, a, 20 * kMiB, nullptr);
  deallocate(device, b, 20 * kMiB, nullptr);
  EXPECT_EQ(take(device, 40 * kMiB), a);  // over where the two meet
  EXPECT_EQ(memory.summary().reserved, 60 * kMiB);
  deallocate(device, other, 20 * kMiB, stream);
  deallocate(device, a, 40 * kMiB, nullptr);
  slots::stream_destroy(device.id, stream);
  trim(device);
  EXPECT_EQ(memory.summary().reserved, 0u);
}

TEST(JoinedMemory, IsNotAssumedOfADeviceThatDoesNotSaySo) {
  using Driver = AddressDevice<Apart>;
  Device& device = Driver::device("fakenojoin");
  Driver::next_address -= 4 * kMiB;  // no gap before the first
  void* a = take(device, 20 * kMiB);
  Driver::next_address -= 4 * kMiB;
  void* b = take(device, 20 * kMiB);
  EXPECT_EQ(b, static_cast<char*>(a) + 20 * kMiB);
  EXPECT_EQ(DeviceMemory::of(device).summary().segments, 2u);
  deallocate(device, a, 20 * kMiB, nullptr);
  deallocate(device, b, 20 * kMiB, nullptr);
  EXPECT_EQ(DeviceMemory::of(device).summary().largest_free, 20 * kMiB);
  trim(device);
}

}  // namespace
}  // namespace tenon::test
