// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/memory/scratch.hpp"
#include "kernel_core/memory/size_class.hpp"
#include "tests/core/allocations.hpp"
#include "tests/core/fake_device.hpp"
#include "tests/core/malloc_counter.hpp"

namespace tenon::test {
namespace {

// One fake kind each.
struct Async {};
struct Host {};
struct Lying {};
struct Opaque {};
struct Plain {};

// Host memory, synchronous: with thread caches.
Device& host_device() { return Fake<Host>::device("fakehost", TENON_DEVICE_HOST_MEMORY); }
FakeState& host_state() { return Fake<Host>::state(); }
// Memory of its own, synchronous: without.
Device& plain_device() { return Fake<Plain>::device("fakeplain", 0); }
FakeState& plain_state() { return Fake<Plain>::state(); }
// With streams and events.
Device& async_device() { return Fake<Async>::device("fakeasync", 0, true); }

UsageTotals usage_of(Device& device) { return DeviceMemory::of(device).usage().totals(); }

std::string stats(Device& device, bool with_blocks = false) {
  std::string json;
  auto sink = [](void* user, const char* text, uint64_t bytes) {
    static_cast<std::string*>(user)->append(text, bytes);
  };
  EXPECT_EQ(slots::memory_stats(device.id, with_blocks, sink, &json, nullptr), TENON_OK);
  return json;
}

TEST(SizeClass, HoldsTheRequestAndWastesAtMostAFifth) {
  for (uint64_t bytes = 1; bytes <= kMaxClassBytes; bytes += bytes < 4096 ? 1 : 61) {
    uint64_t size = class_bytes(class_of(bytes));
    ASSERT_GE(size, bytes);
    ASSERT_EQ(size % 64, 0u);
    if (bytes > 256) {
      ASSERT_LE(static_cast<double>(size - bytes), 0.25 * static_cast<double>(bytes));
    }
    if (class_of(bytes) > 0) {
      ASSERT_LT(class_bytes(class_of(bytes) - 1), bytes);
    }
  }
}

TEST(Allocator, GivesAlignedMemoryOfAnySize) {
  for (Device* device : {&host_device(), &plain_device(), &async_device()}) {
    for (uint64_t bytes : {1ul, 63ul, 64ul, 65ul, 1000ul, 4096ul, 100000ul, 1ul << 20,
                           (1ul << 20) + 1, 5ul << 20, 33ul << 20}) {
      void* data = take(*device, bytes);
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
      std::memset(data, 0x5a, bytes);
      deallocate(*device, data, bytes, nullptr);
    }
    EXPECT_EQ(usage_of(*device).current, 0);
  }
}

TEST(Allocator, AnswersZeroBytesAndMetaWithNull) {
  void* data = &data;
  EXPECT_EQ(allocate(host_device(), 0, nullptr, &data, nullptr), TENON_OK);
  EXPECT_EQ(data, nullptr);
  data = &data;
  EXPECT_EQ(allocate(*find_device(TENON_DEVICE_META), 1 << 30, nullptr, &data, nullptr), TENON_OK);
  EXPECT_EQ(data, nullptr);
  deallocate(host_device(), nullptr, 0, nullptr);
}

TEST(Allocator, MakesNoRawCallAndNoMallocInSteadyState) {
  for (Device* device : {&host_device(), &plain_device()}) {
    FakeState& state = device == &host_device() ? host_state() : plain_state();
    const uint64_t sizes[] = {4, 300, 5000, 70000, 900000, 3 * kMiB, 12 * kMiB, 64 * kMiB};
    auto step = [&] {
      void* data[std::size(sizes)];
      for (size_t i = 0; i < std::size(sizes); ++i)
        allocate(*device, sizes[i], nullptr, &data[i], nullptr);
      for (size_t i = 0; i < std::size(sizes); ++i) deallocate(*device, data[i], sizes[i], nullptr);
    };
    for (int i = 0; i < 3; ++i) step();
    uint64_t raw = state.allocations + state.frees;
    uint64_t mallocs = malloc_count();
    for (int i = 0; i < 1000; ++i) step();
    EXPECT_EQ(malloc_count(), mallocs) << device->name;
    EXPECT_EQ(state.allocations + state.frees, raw) << device->name;
  }
}

TEST(Allocator, NeverHandsOutOverlappingMemory) {
  std::mt19937 random(7);
  for (Device* device : {&host_device(), &plain_device()}) {
    std::map<char*, uint64_t> live;
    for (int i = 0; i < 20000; ++i) {
      if (live.size() > 200 || (!live.empty() && random() % 2)) {
        auto victim = live.begin();
        std::advance(victim, random() % live.size());
        deallocate(*device, victim->first, victim->second, nullptr);
        live.erase(victim);
        continue;
      }
      uint64_t bytes = 1 + (random() >> (random() % 25 + 8));
      char* data = static_cast<char*>(take(*device, bytes));
      auto after = live.lower_bound(data);
      ASSERT_TRUE(after == live.end() || data + bytes <= after->first);
      ASSERT_TRUE(after == live.begin() ||
                  std::prev(after)->first + std::prev(after)->second <= data);
      live[data] = bytes;
    }
    for (auto [data, bytes] : live) deallocate(*device, data, bytes, nullptr);
    EXPECT_EQ(usage_of(*device).current, 0);
    trim(*device);
    EXPECT_EQ(DeviceMemory::of(*device).summary().handed, 0u);
  }
}

TEST(Allocator, JoinsNeighboursInEveryOrderOfRelease) {
  Device& device = plain_device();
  trim(device);
  int order[] = {0, 1, 2, 3};
  do {
    void* quarter[4];
    for (void*& data : quarter) data = take(device, kMiB / 2);
    for (int i : order) deallocate(device, quarter[i], kMiB / 2, nullptr);
    EXPECT_EQ(DeviceMemory::of(device).summary().largest_free, 2 * kMiB);
    uint64_t raw = plain_state().allocations;
    void* whole[2] = {take(device, kMiB), take(device, kMiB)};
    EXPECT_EQ(plain_state().allocations, raw);
    for (void* data : whole) deallocate(device, data, kMiB, nullptr);
  } while (std::next_permutation(order, order + 4));
}

TEST(Allocator, PrefersTheBestFit) {
  Device& device = plain_device();
  trim(device);
  // Holes of 8, 4 and 16 KiB, separated by blocks that stay.
  void *holes[3], *walls[3];
  const uint64_t sizes[] = {8192, 4096, 16384};
  for (int i = 0; i < 3; ++i) {
    holes[i] = take(device, sizes[i]);
    walls[i] = take(device, 512);
  }
  for (int i = 0; i < 3; ++i) deallocate(device, holes[i], sizes[i], nullptr);
  EXPECT_EQ(take(device, 4000), holes[1]);
  EXPECT_EQ(take(device, 8000), holes[0]);
  EXPECT_EQ(take(device, 10000), holes[2]);
  deallocate(device, holes[1], 4000, nullptr);
  deallocate(device, holes[0], 8000, nullptr);
  deallocate(device, holes[2], 10000, nullptr);
  for (void* wall : walls) deallocate(device, wall, 512, nullptr);
}

TEST(Allocator, TrimsAndRetriesWhenMemoryRunsOut) {
  Device& device = plain_device();
  trim(device);
  plain_state().capacity = plain_state().live_bytes + 64 * kMiB;
  // Small requests have segments of their own: 60 MiB fit only if those go back first.
  void* cached[40];
  for (void*& data : cached) data = take(device, kMiB);
  for (void* data : cached) deallocate(device, data, kMiB, nullptr);
  EXPECT_EQ(DeviceMemory::of(device).summary().retries, 0u);
  void* large = take(device, 60 * kMiB);
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(DeviceMemory::of(device).summary().retries, 1u);
  deallocate(device, large, 60 * kMiB, nullptr);
  plain_state().capacity = UINT64_MAX;
}

TEST(Allocator, ExchangesUnusedSegmentsForALargerOne) {
  Device& device = plain_device();
  trim(device);
  void* parts[3];
  for (void*& data : parts) data = take(device, 20 * kMiB);
  void* wall = take(device, 30 * kMiB);
  for (void* data : parts) deallocate(device, data, 20 * kMiB, nullptr);
  uint64_t peak = DeviceMemory::of(device).summary().reserved;
  EXPECT_EQ(peak, 90 * kMiB);
  // What lies scattered serves in one piece, and only what is missing comes on top.
  void* whole = take(device, 50 * kMiB);
  EXPECT_EQ(DeviceMemory::of(device).summary().reserved, peak);
  deallocate(device, whole, 50 * kMiB, nullptr);
  whole = take(device, 64 * kMiB);
  EXPECT_EQ(DeviceMemory::of(device).summary().reserved, peak + 4 * kMiB);
  deallocate(device, whole, 64 * kMiB, nullptr);
  deallocate(device, wall, 30 * kMiB, nullptr);
}

TEST(Allocator, AsksForNoMoreThanNeededBeforeItGivesUp) {
  Device& device = plain_device();
  trim(device);
  plain_state().capacity = plain_state().live_bytes + 4 * kMiB;
  void* data = take(device, 3 * kMiB);  // would like 20 MiB
  EXPECT_NE(data, nullptr);
  deallocate(device, data, 3 * kMiB, nullptr);
  trim(device);
  plain_state().capacity = UINT64_MAX;
}

TEST(Allocator, GivesNoSegmentBackWhileWorkIsRecorded) {
  Device& device = async_device();
  trim(device);
  tenon_stream stream;
  ASSERT_EQ(slots::stream_create(device.id, 0, &stream, nullptr), TENON_OK);
  void* cached = take(device, 20 * kMiB, stream);
  deallocate(device, cached, 20 * kMiB, stream);
  uint64_t hold = 0;
  ASSERT_EQ(slots::memory_hold_begin(device.id, stream, &hold, nullptr), TENON_OK);
  uint64_t frees = Fake<Async>::state().frees;
  void* larger = take(device, 40 * kMiB, stream);
  EXPECT_EQ(Fake<Async>::state().frees, frees);
  deallocate(device, larger, 40 * kMiB, stream);
  ASSERT_EQ(slots::memory_hold_end(device.id, hold, nullptr), TENON_OK);
  slots::memory_hold_release(device.id, hold);
  larger = take(device, 60 * kMiB, stream);
  EXPECT_EQ(Fake<Async>::state().frees, frees + 2);
  deallocate(device, larger, 60 * kMiB, stream);
  slots::stream_destroy(device.id, stream);
}

TEST(Allocator, SaysWhatHoldsMemoryWhenItRunsOutAndGoesOn) {
  Device& device = plain_device();
  trim(device);
  plain_state().capacity = plain_state().live_bytes + 64 * kMiB;
  void* held[2] = {take(device, 20 * kMiB), take(device, 20 * kMiB)};
  tenon_err err;
  void* data = &data;
  EXPECT_EQ(allocate(device, 40 * kMiB, nullptr, &data, &err), TENON_OUT_OF_MEMORY);
  for (const char* part :
       {"fakeplain:0 is out of memory", "requested 40.00 MiB", "reserved 40.00 MiB",
        "allocated 40.00 MiB in 2 blocks", "largest free block", "20.00 MiB x2", "driver error 2",
        "Release tensors"}) {
    EXPECT_NE(err.text.find(part), std::string::npos) << part << "\n" << err.text;
  }
  void* small = take(device, 1000);
  EXPECT_NE(small, nullptr);
  deallocate(device, small, 1000, nullptr);
  for (void* block : held) deallocate(device, block, 20 * kMiB, nullptr);
  plain_state().capacity = UINT64_MAX;
}

TEST(Allocator, RefusesSizesBeyondAnyDeviceWithoutAskingIt) {
  for (Device* device : {&host_device(), &plain_device()}) {
    for (uint64_t bytes :
         {UINT64_MAX, UINT64_MAX - 63, uint64_t{1} << 63, (uint64_t{1} << 47) + 1}) {
      tenon_err err;
      void* data = nullptr;
      EXPECT_EQ(allocate(*device, bytes, nullptr, &data, &err), TENON_OUT_OF_MEMORY);
      EXPECT_NE(err.text.find("no device has that much"), std::string::npos) << err.text;
    }
  }
}

TEST(Allocator, TakesBlocksBackOnAnyThread) {
  Device& device = host_device();
  constexpr int kRounds = 20000;
  std::atomic<void*> box{nullptr};
  std::atomic<bool> ended{false};
  std::thread consumer([&] {
    for (int i = 0; i < kRounds; ++i) {
      void* data;
      while (!(data = box.exchange(nullptr))) std::this_thread::yield();
      deallocate(device, data, 1000, nullptr);
    }
    ended = true;
  });
  for (int i = 0; i < kRounds; ++i) {
    void* data = take(device, 1000);
    void* empty = nullptr;
    while (!box.compare_exchange_weak(empty, data)) {
      empty = nullptr;
      std::this_thread::yield();
    }
  }
  consumer.join();
  EXPECT_EQ(usage_of(device).current, 0);
  // What one thread allocates and another frees must not pile up.
  EXPECT_LT(usage_of(device).peak, static_cast<int64_t>(256 * kMiB));
  EXPECT_LT(DeviceMemory::of(device).summary().handed, 8 * kMiB);
}

TEST(Allocator, GetsTheBlocksOfAThreadBackWhenItEnds) {
  Device& device = host_device();
  trim(device);
  uint64_t handed = DeviceMemory::of(device).summary().handed;
  std::thread([&] {
    void* blocks[100];
    for (void*& data : blocks) data = take(device, 5000);
    for (void* data : blocks) deallocate(device, data, 5000, nullptr);
    EXPECT_GT(DeviceMemory::of(device).summary().handed, handed);
  }).join();
  EXPECT_EQ(DeviceMemory::of(device).summary().handed, handed);
}

TEST(Allocator, UsesKeptBlocksForOtherSizesBeforeItGrows) {
  Device& device = host_device();
  trim(device);
  std::vector<void*> blocks(40000);
  for (void*& data : blocks) data = take(device, 100);
  for (void* data : blocks) deallocate(device, data, 100, nullptr);
  uint64_t raw = host_state().allocations;
  // As many again are there...
  for (void*& data : blocks) data = take(device, 100);
  for (void* data : blocks) deallocate(device, data, 100, nullptr);
  EXPECT_EQ(host_state().allocations, raw);
  // ... and of another size.
  void* others[3];
  for (void*& data : others) data = take(device, kMiB);
  EXPECT_EQ(host_state().allocations, raw);
  for (void* data : others) std::memset(data, 0, kMiB);
  for (void* data : others) deallocate(device, data, kMiB, nullptr);
  trim(device);
  EXPECT_EQ(DeviceMemory::of(device).summary().reserved, 0u);
}

TEST(Allocator, IsSafeUnderManyThreads) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      std::vector<std::pair<unsigned char*, uint64_t>> live;
      for (int i = 0; i < 20000; ++i) {
        if (live.size() < 40) {
          uint64_t bytes = 1 + (random() >> (random() % 20 + 10));
          auto* data = static_cast<unsigned char*>(take(host_device(), bytes));
          data[0] = data[bytes - 1] = static_cast<unsigned char>(seed);
          live.emplace_back(data, bytes);
        } else {
          size_t at = random() % live.size();
          auto [data, bytes] = live[at];
          ASSERT_EQ(data[0], seed);
          ASSERT_EQ(data[bytes - 1], seed);
          deallocate(host_device(), data, bytes, nullptr);
          live[at] = live.back();
          live.pop_back();
        }
      }
      for (auto [data, bytes] : live) deallocate(host_device(), data, bytes, nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(usage_of(host_device()).current, 0);
}

TEST(Allocator, HoldsManyBlocksInLinearTime) {
  for (Device* device : {&host_device(), &plain_device()}) {
    auto seconds = [&](size_t count) {
      auto start = std::chrono::steady_clock::now();
      std::vector<void*> blocks(count);
      for (void*& data : blocks) allocate(*device, 200, nullptr, &data, nullptr);
      for (void* data : blocks) deallocate(*device, data, 200, nullptr);
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    seconds(160000);
    double best =
        1e9;  // 4 if linear, 16 if quadratic; the least of a few tries, for noisy machines
    for (int i = 0; i < 5; ++i) best = std::min(best, seconds(160000) / seconds(40000));
    EXPECT_LT(best, 9) << device->name;
  }
}

TEST(Allocator, KeepsMemoryUntilForeignStreamsAreDone) {
  Device& device = async_device();
  tenon_stream owner, other;
  ASSERT_EQ(slots::stream_create(device.id, 0, &owner, nullptr), TENON_OK);
  ASSERT_EQ(slots::stream_create(device.id, 0, &other, nullptr), TENON_OK);

  // Used on its own stream only: the next request there may have it at once.
  void* data = take(device, 1000, owner);
  owner->queued = 1;
  deallocate(device, data, 1000, owner);
  EXPECT_EQ(take(device, 1000, owner), data);

  other->queued = 1;
  record_use(device, data, other);
  record_use(device, data, other);
  record_use(device, data, owner);
  deallocate(device, data, 1000, owner);
  EXPECT_EQ(DeviceMemory::of(device).summary().pending, 1024u);
  void* next = take(device, 1000, owner);
  EXPECT_NE(next, data);
  deallocate(device, next, 1000, owner);

  other->done = 1;
  void* again = take(device, 1000, owner);
  EXPECT_EQ(DeviceMemory::of(device).summary().pending, 0u);
  deallocate(device, again, 1000, owner);

  // Another stream's cache is not touched.
  void* foreign = take(device, 1000, other);
  EXPECT_NE(foreign, again);
  deallocate(device, foreign, 1000, other);
  slots::stream_destroy(device.id, owner);
  slots::stream_destroy(device.id, other);
  EXPECT_EQ(usage_of(device).current, 0);
}

TEST(Allocator, WaitsForPendingBlocksBeforeItGivesUp) {
  Device& device = async_device();
  FakeState& state = Fake<Async>::state();
  trim(device);
  tenon_stream other;
  ASSERT_EQ(slots::stream_create(device.id, 0, &other, nullptr), TENON_OK);
  void* data = take(device, 30 * kMiB);
  state.capacity = state.live_bytes;
  other->queued = 1;
  record_use(device, data, other);
  deallocate(device, data, 30 * kMiB, nullptr);
  EXPECT_EQ(take(device, 30 * kMiB), data);
  EXPECT_EQ(other->done, 1u);
  state.capacity = UINT64_MAX;
  deallocate(device, data, 30 * kMiB, nullptr);
  slots::stream_destroy(device.id, other);
}

TEST(Allocator, InheritsTheMemoryOfADestroyedStream) {
  Device& device = async_device();
  trim(device);
  tenon_stream stream;
  ASSERT_EQ(slots::stream_create(device.id, 0, &stream, nullptr), TENON_OK);
  void* kept = take(device, 3 * kMiB, stream);
  void* freed = take(device, 3 * kMiB, stream);
  deallocate(device, freed, 3 * kMiB, stream);
  void* used_there = take(device, 20 * kMiB);  // all of its segment
  record_use(device, used_there, stream);
  slots::stream_destroy(device.id, stream);
  EXPECT_EQ(take(device, 3 * kMiB), freed);
  deallocate(device, kept, 3 * kMiB, stream);
  deallocate(device, freed, 3 * kMiB, nullptr);
  deallocate(device, used_there, 20 * kMiB, nullptr);
  trim(device);
  EXPECT_EQ(DeviceMemory::of(device).summary().reserved, 0u);
}

TEST(Allocator, NeverCutsOpaqueHandles) {
  Device& device = Fake<Opaque>::device("fakeopaque", TENON_DEVICE_OPAQUE_MEMORY);
  FakeState& state = Fake<Opaque>::state();
  void* a = take(device, 1000);
  void* b = take(device, 1000);
  EXPECT_EQ(state.live.count(a), 1u);
  EXPECT_EQ(state.live.count(b), 1u);
  deallocate(device, a, 1000, nullptr);
  void* small = take(device, 64 << 10);
  EXPECT_NE(small, a);
  EXPECT_EQ(take(device, 900), a);
  deallocate(device, a, 900, nullptr);
  deallocate(device, b, 1000, nullptr);
  deallocate(device, small, 64 << 10, nullptr);
  trim(device);
  EXPECT_TRUE(state.live.empty());
}

TEST(Allocator, CountsExactlyOnOneThread) {
  Device& device = host_device();
  slots::memory_reset_peak(device.id);
  UsageTotals before = usage_of(device);
  void* a = take(device, 1000);
  void* b = take(device, 5 * kMiB);
  deallocate(device, a, 1000, nullptr);
  UsageTotals during = usage_of(device);
  EXPECT_EQ(during.current - before.current, static_cast<int64_t>(5 * kMiB));
  EXPECT_EQ(during.peak - before.current, static_cast<int64_t>(5 * kMiB + 1000));
  EXPECT_EQ(during.allocations - before.allocations, 2u);
  EXPECT_EQ(during.frees - before.frees, 1u);
  deallocate(device, b, 5 * kMiB, nullptr);
  EXPECT_EQ(usage_of(device).peak - before.current, static_cast<int64_t>(5 * kMiB + 1000));
  slots::memory_reset_peak(device.id);
  EXPECT_EQ(usage_of(device).peak, usage_of(device).current);
}

TEST(Allocator, TrimGivesUnusedSegmentsBack) {
  Device& device = plain_device();
  trim(device);
  void* kept = take(device, 1000);
  void* gone = take(device, 30 * kMiB);
  deallocate(device, gone, 30 * kMiB, nullptr);
  EXPECT_EQ(trim(device), 30 * kMiB);
  EXPECT_EQ(DeviceMemory::of(device).summary().reserved, 2 * kMiB);
  EXPECT_EQ(trim(device), 0u);
  deallocate(device, kept, 1000, nullptr);
  EXPECT_EQ(trim(device), 2 * kMiB);
  EXPECT_EQ(plain_state().live_bytes, 0u);
}

TEST(Allocator, HostMemoryAboveTheCacheLimitGoesBackAtOnce) {
  Device& device = host_device();  // size unknown: 1 GiB may stay
  trim(device);
  uint64_t frees = host_state().frees;
  void* blocks[3];
  for (void*& data : blocks) data = take(device, 600 * kMiB);
  for (void* data : blocks) deallocate(device, data, 600 * kMiB, nullptr);
  EXPECT_EQ(host_state().frees - frees, 2u);
  trim(device);
}

TEST(Allocator, DescribesEverySegmentAndBlock) {
  Device& device = plain_device();
  trim(device);
  void* data = take(device, 1000);
  std::string json = stats(device, true);
  for (const char* part : {"\"device\":\"fakeplain:0\"", "\"current\":1000", "\"reserved\":2097152",
                           "\"live\":1", "\"fragmentation\":0.0000", "\"pool\":\"small\"",
                           "\"stream\":\"0x0\"", "{\"offset\":0,\"bytes\":1024,\"state\":\"used\"}",
                           "{\"offset\":1024,\"bytes\":2096128,\"state\":\"free\"}"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
  EXPECT_EQ(stats(device).find("blocks"), std::string::npos);
  deallocate(device, data, 1000, nullptr);
}

TEST(Allocator, BelievesNoPlugin) {
  Device& device = Fake<Lying>::device("fakelying", 0);
  FakeState& state = Fake<Lying>::state();
  auto text = [&] {
    tenon_err err;
    void* data = nullptr;
    EXPECT_EQ(allocate(device, 1000, nullptr, &data, &err), TENON_INTERNAL);
    return err.text;
  };
  state.alloc_returns_null = true;
  EXPECT_EQ(text(), "fakelying:0 > alloc: returned OK and no memory; this is a bug in the plugin");
  state.alloc_returns_null = false;
  state.alloc_misaligns = true;
  EXPECT_NE(text().find("expected memory aligned to 512, got 0x"), std::string::npos);
  EXPECT_EQ(state.live_bytes, 0u);
  state.alloc_misaligns = false;
  void* data = take(device, 1000);
  state.alloc_repeats = true;
  tenon_err err;
  void* more = nullptr;
  EXPECT_EQ(allocate(device, 5 * kMiB, nullptr, &more, &err), TENON_INTERNAL);
  EXPECT_NE(err.text.find("overlaps memory it has given out before"), std::string::npos);
  state.alloc_repeats = false;
  state.capacity = 0;
  state.fails_without_text = true;
  err = {};
  EXPECT_EQ(allocate(device, 50 * kMiB, nullptr, &more, &err), TENON_OUT_OF_MEMORY);
  EXPECT_NE(err.text.find("failed with code 8 and no text"), std::string::npos) << err.text;
  deallocate(device, data, 1000, nullptr);
  EXPECT_EQ(state.wrong_frees, 0u);
}

// Alone in its process the first fork comes while the other thread makes its cache and the memory.
TEST(Allocator, WorksInAForkedChild) {
  Device& device = host_device();
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      void* data = take(device, 3 * kMiB);
      deallocate(device, data, 3 * kMiB, nullptr);
    }
  });
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      void* data = nullptr;
      bool good = allocate(device, 3 * kMiB, nullptr, &data, nullptr) == TENON_OK;
      deallocate(device, data, 3 * kMiB, nullptr);
      _exit(good ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

TEST(ScratchArena, ReturnsEverythingAtTheEnd) {
  int64_t before = usage_of(host_device()).current;
  {
    ScratchArena arena(host_device(), nullptr);
    for (uint64_t bytes : {100, 200, 0, 3000, 40000, 500000, 6000000}) {
      void* data = &data;
      ASSERT_EQ(arena.allocate(bytes, &data, nullptr), TENON_OK);
      EXPECT_EQ(data == nullptr, bytes == 0);
    }
    EXPECT_EQ(usage_of(host_device()).current - before, 6543300);
  }
  EXPECT_EQ(usage_of(host_device()).current, before);
}

}  // namespace
}  // namespace tenon::test
