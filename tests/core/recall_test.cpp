// SPDX-License-Identifier: Apache-2.0
// What threads keep for themselves comes back where memory is short: large blocks at once, and what
// the thread has that is short of it; small ones when their thread is next at the device.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "kernel_core/memory/thread_cache.hpp"
#include "tests/core/allocations.hpp"
#include "tests/core/fake_device.hpp"

namespace tenon::test {
namespace {

struct Recalling {};

Device& device() { return Fake<Recalling>::device("fakerecalling", TENON_DEVICE_HOST_MEMORY); }
DeviceMemory& memory() { return DeviceMemory::of(device()); }

void* no_data = nullptr;

void take_and_give(const std::vector<uint64_t>& sizes) {
  std::vector<void*> blocks;
  for (uint64_t bytes : sizes) blocks.push_back(take(device(), bytes));
  for (size_t i = 0; i < sizes.size(); ++i) deallocate(device(), blocks[i], sizes[i], nullptr);
}

// A thread that does what it is told, and lives on with what it keeps.
class Worker {
 public:
  ~Worker() {
    is_over_ = true;
    thread_.join();
  }
  void run(std::function<void()> work) {
    work_ = std::move(work);
    is_asked_ = true;
    while (is_asked_) std::this_thread::yield();
  }

 private:
  void serve() {
    while (!is_over_) {
      if (is_asked_) work_(), is_asked_ = false;
      std::this_thread::yield();
    }
  }
  std::function<void()> work_;
  std::atomic<bool> is_asked_{false}, is_over_{false};
  std::thread thread_{[this] { serve(); }};
};

// No more than what is reserved now, while one lives.
struct Short {
  FakeState& state = Fake<Recalling>::state();
  Short() { state.capacity = state.live_bytes; }
  ~Short() { state.capacity = UINT64_MAX; }
};

TEST(Recall, TakesOtherThreadsLargeBlocks) {
  for (uint64_t wanted : {9 * kMiB, 20 * kMiB}) {
    trim(device());
    ASSERT_EQ(memory().summary().reserved, 0u);
    Worker worker;
    worker.run([] { take_and_give({20 * kMiB}); });
    Short now;
    void* data = take(device(), wanted);
    ASSERT_NE(data, nullptr);
    std::memset(data, 1, wanted);
    worker.run([] {
      EXPECT_EQ(allocate(device(), 20 * kMiB, nullptr, &no_data, nullptr), TENON_OUT_OF_MEMORY);
    });
    deallocate(device(), data, wanted, nullptr);  // which this thread keeps now
    worker.run([] { take_and_give({20 * kMiB}); });
    EXPECT_EQ(memory().summary().handed, 20 * kMiB);
  }
  trim(device());
  EXPECT_EQ(memory().summary().reserved, 0u);
  EXPECT_EQ(memory().usage().totals().current, 0);
}

struct Case {
  const char* what;
  std::vector<uint64_t> kept;
  uint64_t wanted;
};
std::vector<uint64_t> many_small() {
  std::vector<uint64_t> sizes(512, 1000);
  sizes.resize(1024, 1250);
  return sizes;
}
const Case kCases[] = {
    {"segments of small blocks, for a large one", std::vector<uint64_t>(8, 500 << 10), 3 * kMiB},
    {"small blocks, for one of another class", {kMiB, kMiB}, 900 << 10},
    {"many small blocks, for a larger one", many_small(), kMiB},
};

TEST(Recall, TakesTheThreadsOwnBlocksOfOtherSizes) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.what);
    trim(device());
    take_and_give(one.kept);
    Short now;
    void* data = take(device(), one.wanted);
    ASSERT_NE(data, nullptr);
    deallocate(device(), data, one.wanted, nullptr);
  }
}

TEST(Recall, AsksOtherThreadsForTheirSmallBlocks) {
  for (const Case& one : kCases) {
    if (one.wanted > kMiB) continue;  // for which the thread may have nothing left at all
    SCOPED_TRACE(one.what);
    trim(device());
    Worker worker;
    worker.run([&] { take_and_give(one.kept); });
    Short now;
    EXPECT_EQ(allocate(device(), one.wanted, nullptr, &no_data, nullptr), TENON_OUT_OF_MEMORY);
    // A size of which the thread has none brings it there, whether or not it gets any.
    worker.run([] {
      void* data = nullptr;
      if (allocate(device(), 100, nullptr, &data, nullptr) == TENON_OK)
        deallocate(device(), data, 100, nullptr);
    });
    void* data = take(device(), one.wanted);
    ASSERT_NE(data, nullptr);
    deallocate(device(), data, one.wanted, nullptr);
    // It is asked once.
    now.state.capacity = UINT64_MAX;
    trim(device());
    worker.run([] { take_and_give({1000, 100 << 10}); });
    worker.run([] { take_and_give({1000, 100 << 10}); });
    uint64_t before = memory().summary().handed;
    worker.run([] { take_and_give({1000, 100 << 10}); });
    EXPECT_GT(before, 0u);
    EXPECT_EQ(memory().summary().handed, before);
  }
}

TEST(Recall, SaysThatMemoryIsOutWhereThatIsNotEnough) {
  trim(device());
  Worker worker;
  std::vector<uint8_t*> used;
  worker.run([&] {
    for (int i = 0; i < 100; ++i) used.push_back(static_cast<uint8_t*>(take(device(), 5000)));
    for (int i = 0; i < 100; ++i) std::memset(used[i], i, 5000);
    take_and_give({20 * kMiB, 5000, 5000, 70000});
  });
  Short now;
  tenon_err err;
  void* data = nullptr;
  EXPECT_EQ(allocate(device(), 60 * kMiB, nullptr, &data, &err), TENON_OUT_OF_MEMORY);
  EXPECT_NE(err.text.find("requested 60.00 MiB"), std::string::npos) << err.text;
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(memory().usage().totals().current, 100 * 5000);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(used[i][0], i);
    EXPECT_EQ(used[i][4999], i);
    deallocate(device(), used[i], 5000, nullptr);
  }
  EXPECT_EQ(memory().usage().totals().current, 0);
}

// Threads take blocks, write them, hand some of them on and give them back, while one recalls them
// all the time.
TEST(Recall, TakesNoBlockThatIsInUse) {
  trim(device());
  std::atomic<void*> passed{nullptr};  // of 3000 bytes
  std::atomic<bool> is_done{false};
  auto work = [&](uint32_t seed) {
    constexpr int kHeld = 40;
    struct {
      uint32_t* data = nullptr;
      uint64_t bytes = 0;
      uint32_t value = 0;
    } held[kHeld];
    for (int i = 0; i < 60000; ++i) {
      seed = seed * 1664525 + 1013904223;
      auto& one = held[(seed >> 8) % kHeld];
      if (one.data) {
        EXPECT_EQ(one.data[0], one.value);  // not shared
        EXPECT_EQ(one.data[one.bytes / 4 - 1], one.value);
        void* given = one.bytes == 3000 ? passed.exchange(one.data) : one.data;
        deallocate(device(), given, one.bytes, nullptr);
      }
      uint32_t kind = seed >> 28;
      one.bytes = kind == 0 ? 2 * kMiB : kind < 4 ? 3000 : 8 + 4 * (seed >> 16 & 1023);
      one.value = seed;
      one.data = static_cast<uint32_t*>(take(device(), one.bytes));
      one.data[0] = one.data[one.bytes / 4 - 1] = seed;
    }
    for (auto& one : held)
      if (one.data) deallocate(device(), one.data, one.bytes, nullptr);
  };
  std::thread recaller([&] {
    while (!is_done) {
      memory().recall();
      // Bytes are exact only when no call is under way; blocks are never said to be fewer than live.
      UsageTotals now = memory().usage().totals();
      EXPECT_GE(now.allocations, now.frees);
    }
  });
  std::thread threads[3];
  for (uint32_t i = 0; i < 3; ++i) threads[i] = std::thread(work, i);
  for (std::thread& thread : threads) thread.join();
  is_done = true;
  recaller.join();
  deallocate(device(), passed, 3000, nullptr);
  trim(device());
  EXPECT_EQ(memory().summary().reserved, 0u);
  EXPECT_EQ(memory().usage().totals().current, 0);
}

// Several run out at once, and recall each other's.
TEST(Recall, MayBeOfSeveralAtOnce) {
  trim(device());
  take_and_give({64 * kMiB, 2 * kMiB, 2 * kMiB, 2 * kMiB});
  {
    Short now;
    auto work = [&](uint32_t seed) {
      for (int i = 0; i < 3000; ++i) {
        seed = seed * 1664525 + 1013904223;
        uint64_t bytes = seed >> 31 ? 8 * kMiB : 1 + (seed >> 12);
        tenon_err err;
        void* data = nullptr;
        tenon_status status = allocate(device(), bytes, nullptr, &data, &err);
        EXPECT_TRUE(status == TENON_OK || status == TENON_OUT_OF_MEMORY) << err.text;
        if (data) static_cast<char*>(data)[bytes - 1] = 1;
        deallocate(device(), data, bytes, nullptr);
      }
    };
    std::thread threads[4];
    for (uint32_t i = 0; i < 4; ++i) threads[i] = std::thread(work, i);
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(memory().usage().totals().current, 0);
  trim(device());
  EXPECT_EQ(memory().summary().reserved, 0u);
}

}  // namespace
}  // namespace tenon::test
