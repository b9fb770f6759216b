// SPDX-License-Identifier: Apache-2.0
// The large block that a thread holds back: whom it serves, and that it is in nobody's way.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/core/allocations.hpp"
#include "tests/core/fake_device.hpp"
#include "tests/core/growing_host.hpp"

namespace tenon::test {
namespace {

struct Caching {};
struct Growing {};

Device& device() { return Fake<Caching>::device("fakecaching", TENON_DEVICE_HOST_MEMORY); }
uint64_t handed() { return DeviceMemory::of(device()).summary().handed; }

TEST(LargeBlock, ComesBackForTheSameSizeAndNoOther) {
  trim(device());
  void* first = take(device(), 16 * kMiB);
  deallocate(device(), first, 16 * kMiB, nullptr);
  EXPECT_EQ(handed(), 16 * kMiB);  // with the thread
  EXPECT_EQ(take(device(), 16 * kMiB), first);
  deallocate(device(), first, 16 * kMiB, nullptr);
  // For another size it is one with what lies beside it.
  void* whole = take(device(), 16 * kMiB + 64);
  EXPECT_EQ(handed(), 16 * kMiB + 64);
  deallocate(device(), whole, 16 * kMiB + 64, nullptr);
  void* smaller = take(device(), 8 * kMiB);
  EXPECT_EQ(handed(), 8 * kMiB);
  deallocate(device(), smaller, 8 * kMiB, nullptr);
}

TEST(LargeBlock, IsOneForAThreadAndNotTooLarge) {
  trim(device());
  void* blocks[3];
  for (void*& data : blocks) data = take(device(), 20 * kMiB);
  for (void* data : blocks) deallocate(device(), data, 20 * kMiB, nullptr);
  EXPECT_EQ(handed(), 20 * kMiB);
  void* huge = take(device(), 65 * kMiB);
  deallocate(device(), huge, 65 * kMiB, nullptr);
  EXPECT_EQ(handed(), 0u);
}

TEST(LargeBlock, GoesBackWithTheThreadAndWithTrim) {
  trim(device());
  std::thread([] {
    deallocate(device(), take(device(), 20 * kMiB), 20 * kMiB, nullptr);
    EXPECT_EQ(handed(), 20 * kMiB);
  }).join();
  EXPECT_EQ(handed(), 0u);
  deallocate(device(), take(device(), 20 * kMiB), 20 * kMiB, nullptr);
  trim(device());
  EXPECT_EQ(DeviceMemory::of(device()).summary().reserved, 0u);
}

TEST(LargeBlock, IsNotMissedWhereMemoryIsShort) {
  trim(device());
  FakeState& state = Fake<Caching>::state();
  state.capacity = state.live_bytes + 31 * kMiB;
  void* first = take(device(), 30 * kMiB);
  deallocate(device(), first, 30 * kMiB, nullptr);
  void* small = take(device(), kMiB);  // a segment of its own, for which there is room again
  void* second = take(device(), 25 * kMiB);
  EXPECT_NE(second, nullptr);
  deallocate(device(), small, kMiB, nullptr);
  deallocate(device(), second, 25 * kMiB, nullptr);
  state.capacity = UINT64_MAX;
}

TEST(LargeBlock, CostsNoMemory) {
  using Driver = GrowingHost<Growing>;
  Device& grown = Driver::device("fakegrownblock");
  auto reserved = [&] { return DeviceMemory::of(grown).summary().reserved; };
  void* low = take(grown, 30 * kMiB);
  void* wall = take(grown, 20 * kMiB);
  uint64_t before = reserved();
  deallocate(grown, low, 30 * kMiB, nullptr);
  void* parts[2] = {take(grown, 10 * kMiB), take(grown, 20 * kMiB)};
  EXPECT_EQ(parts[0], low);
  EXPECT_EQ(reserved(), before);
  for (int i : {0, 1}) deallocate(grown, parts[i], i ? 20 * kMiB : 10 * kMiB, nullptr);
  EXPECT_EQ(take(grown, 30 * kMiB), low);
  EXPECT_EQ(reserved(), before);
  deallocate(grown, low, 30 * kMiB, nullptr);
  deallocate(grown, wall, 20 * kMiB, nullptr);
}

TEST(LargeBlock, IsCountedAsFree) {
  trim(device());
  slots::memory_reset_peak(device().id);
  UsageTotals before = DeviceMemory::of(device()).usage().totals();
  for (int i = 0; i < 5; ++i) {
    void* data = take(device(), 16 * kMiB);
    UsageTotals during = DeviceMemory::of(device()).usage().totals();
    EXPECT_EQ(during.current - before.current, static_cast<int64_t>(16 * kMiB));
    EXPECT_EQ(during.allocations - before.allocations, static_cast<uint64_t>(i) + 1);
    deallocate(device(), data, 16 * kMiB, nullptr);
  }
  UsageTotals after = DeviceMemory::of(device()).usage().totals();
  EXPECT_EQ(after.current, before.current);
  EXPECT_EQ(after.frees - before.frees, 5u);
  void* two[2] = {take(device(), 9 * kMiB), take(device(), 9 * kMiB)};
  for (void* data : two) deallocate(device(), data, 9 * kMiB, nullptr);
  after = DeviceMemory::of(device()).usage().totals();
  EXPECT_EQ(after.peak - before.current, static_cast<int64_t>(18 * kMiB));
  EXPECT_EQ(after.current, before.current);
}

}  // namespace
}  // namespace tenon::test
