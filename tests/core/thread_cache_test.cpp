// SPDX-License-Identifier: Apache-2.0
// The large block that a thread holds back: which requests it serves, and that it does not keep memory from other threads.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "kernel_core/memory/thread_cache.hpp"
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
  trim(device());
  void* huge = take(device(), 65 * kMiB);
  deallocate(device(), huge, 65 * kMiB, nullptr);
  EXPECT_EQ(handed(), 0u);
}

TEST(LargeBlock, OfMoreIsHeldBackWhereTheDeviceWouldGiveItAgain) {
  trim(device());
  constexpr uint64_t kSize = 64 * kMiB;
  void* first = take(device(), kSize);
  for (int i = 0; i < 3; ++i) {
    deallocate(device(), first, kSize, nullptr);
    EXPECT_EQ(handed(), kSize);
    EXPECT_EQ(take(device(), kSize), first);
  }
  // Not once another block has come or gone, or if it is another thread's.
  void* other = take(device(), 20 * kMiB);
  deallocate(device(), first, kSize, nullptr);
  EXPECT_EQ(handed(), 20 * kMiB);
  first = take(device(), kSize);
  deallocate(device(), other, 20 * kMiB, nullptr);  // held back, until
  EXPECT_EQ(handed(), kSize + 20 * kMiB);
  deallocate(device(), first, kSize, nullptr);
  EXPECT_EQ(handed(), 0u);
  first = take(device(), kSize);
  std::thread([&] { deallocate(device(), first, kSize, nullptr); }).join();
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

// What a thread's own destructors give back comes when its cache has gone.
TEST(LargeBlock, MayBeGivenBackWhenTheThreadsCacheHasGone) {
  trim(device());
  int64_t before = DeviceMemory::of(device()).usage().totals().current;
  struct Owner {
    void *small = nullptr, *large = nullptr;
    ~Owner() {
      EXPECT_EQ(find_thread_cache(device()), nullptr);
      deallocate(device(), small, 100, nullptr);
      deallocate(device(), large, 20 * kMiB, nullptr);
      void* late = take(device(), 30 * kMiB);
      std::memset(late, 1, 30 * kMiB);
      deallocate(device(), late, 30 * kMiB, nullptr);
      EXPECT_EQ(find_thread_cache(device()), nullptr);
    }
  };
  std::thread([] {
    static thread_local Owner owner;  // made before the cache, so that it ends after it
    owner.small = take(device(), 100);
    owner.large = take(device(), 20 * kMiB);
    deallocate(device(), take(device(), 40 * kMiB), 40 * kMiB, nullptr);
  }).join();
  EXPECT_EQ(handed(), 0u);
  EXPECT_EQ(DeviceMemory::of(device()).usage().totals().current, before);
}

// Threads that take, hold back and hand each other large blocks while one reads and trims.
TEST(LargeBlock, StaysOneThreadsAmongSeveral) {
  trim(device());
  int64_t before = DeviceMemory::of(device()).usage().totals().current;
  std::atomic<void*> passed{nullptr};  // of 40 MiB
  std::atomic<bool> done{false};
  auto work = [&](uint32_t seed) {
    for (int i = 0; i < 2000; ++i) {
      seed = seed * 1664525 + 1013904223;
      uint64_t bytes = (seed >> 24 & 3) == 0 ? 40 * kMiB : ((seed >> 16 & 7) + 2) * kMiB;
      auto* data = static_cast<uint32_t*>(take(device(), bytes));
      data[0] = seed;
      data[bytes / 4 - 1] = seed;
      EXPECT_EQ(data[0], seed);  // not shared
      EXPECT_EQ(data[bytes / 4 - 1], seed);
      void* given = data;
      if (bytes == 40 * kMiB) given = passed.exchange(data);
      deallocate(device(), given, bytes, nullptr);
    }
  };
  std::thread reader([&] {
    while (!done) {
      UsageTotals now = DeviceMemory::of(device()).usage().totals();
      EXPECT_GE(now.allocations, now.frees);
      trim(device());
    }
  });
  std::thread threads[3];
  for (uint32_t i = 0; i < 3; ++i) threads[i] = std::thread(work, i);
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  deallocate(device(), passed, 40 * kMiB, nullptr);
  trim(device());
  EXPECT_EQ(handed(), 0u);
  EXPECT_EQ(DeviceMemory::of(device()).usage().totals().current, before);
}

// A forked child has its parent's blocks, and this thread's held one; those of threads that it has
// not come back when they are recalled.
TEST(LargeBlock, IsTheForkedThreads) {
  trim(device());
  std::atomic<int> stage{0};
  std::thread other([&] {
    deallocate(device(), take(device(), 24 * kMiB), 24 * kMiB, nullptr);
    for (stage = 1; stage != 2;) std::this_thread::yield();
  });
  while (stage != 1) std::this_thread::yield();
  void* first = take(device(), 20 * kMiB);
  deallocate(device(), first, 20 * kMiB, nullptr);
  pid_t child = fork();
  if (child == 0) {
    void* own = take(device(), 20 * kMiB);
    void* second = take(device(), 24 * kMiB);
    bool is_sound = own == first && second && second != own;
    std::memset(own, 1, 20 * kMiB);
    std::memset(second, 2, 24 * kMiB);
    deallocate(device(), own, 20 * kMiB, nullptr);
    deallocate(device(), second, 24 * kMiB, nullptr);
    is_sound &= handed() == 48 * kMiB;
    trim(device());
    _exit(is_sound && handed() == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  stage = 2;
  other.join();
  EXPECT_EQ(handed(), 20 * kMiB);
}

}  // namespace
}  // namespace tenon::test
