// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <thread>

#include "support.hpp"

namespace {

using namespace gpu;

class Memory : public Simulated {};

TEST_F(Memory, CopiesThereAndBack) {
  const std::vector<int> values = {1, 2, 3, 4, 5};
  int* memory = upload(values);
  EXPECT_EQ(download(memory, values.size()), values);
  EXPECT_EQ(device_free(memory), 0);
}

TEST_F(Memory, TheHostCannotReadTheAddressesOfADevice) {
  const int* memory = upload(std::vector<int>{1});
  EXPECT_DEATH(
      {
        volatile int value = *memory;
        (void)value;
      },
      "");
}

TEST_F(Memory, FreshMemoryHoldsNoZeros) {
  float* memory = alloc<float>(1000);
  for (float value : download(memory, 1000)) EXPECT_TRUE(std::isnan(value));
}

TEST_F(Memory, CopiesOutsideAnAllocationAreRefused) {
  int* memory = alloc<int>(1024);  // one page; the next one may belong to another test
  void* base;
  size_t bytes;
  ASSERT_EQ(address_range(&base, &bytes, memory + 3), 0);
  EXPECT_EQ(base, memory);
  std::vector<char> host(bytes + 4096 * 4096);
  EXPECT_EQ(copy_to_device_now(memory, host.data(), host.size()), 1);
  EXPECT_EQ(copy_to_device_now(nullptr, host.data(), 1), 1);
  EXPECT_EQ(copy_to_device_now(host.data(), memory, 1), 1);  // the wrong way round
  EXPECT_EQ(device_free(memory), 0);
  EXPECT_EQ(device_free(memory), 1);
}

TEST_F(Memory, ThereIsOnlySoMuch) {
  size_t free_before, free_after, total;
  ASSERT_EQ(memory_info(&free_before, &total), 0);
  void* memory = nullptr;
  EXPECT_EQ(device_alloc(&memory, total + 1), 2);
  ASSERT_EQ(device_alloc(&memory, 1 << 20), 0);
  ASSERT_EQ(memory_info(&free_after, &total), 0);
  EXPECT_EQ(free_before - free_after, 1u << 20);
  EXPECT_EQ(device_free(memory), 0);
}

TEST_F(Memory, PinnedAndManagedMemoryIsReachedFromBothSides) {
  FunctionHandle twice =
      kernel(load("extern \"C\" __global__ void twice(int* x) { x[INDEX] *= 2; }"), "twice");
  void *pinned = nullptr, *managed = nullptr;
  ASSERT_EQ(host_alloc(&pinned, 4096, 1), 0);
  ASSERT_EQ(managed_alloc(&managed, 4096, 1), 0);
  for (void* memory : {pinned, managed}) {
    static_cast<int*>(memory)[3] = 21;
    ASSERT_EQ(gpu::run(twice, 1, 8, nullptr, memory), 0);
    ASSERT_EQ(synchronize(), 0);
    EXPECT_EQ(static_cast<int*>(memory)[3], 42);
  }
  EXPECT_EQ(host_free(pinned), 0);
  EXPECT_EQ(device_free(managed), 0);
}

TEST_F(Memory, FillsWithPatterns) {
  auto* memory = alloc<uint32_t>(100);
  ASSERT_EQ(fill32(memory, 0x01020304u, 100, nullptr), 0);
  ASSERT_EQ(fill16(memory, 0xabcd, 3, nullptr), 0);
  ASSERT_EQ(fill8(memory + 50, 7, 4, nullptr), 0);
  const std::vector<uint32_t> values = download(memory, 100);
  EXPECT_EQ(values[0], 0xabcdabcdu);
  EXPECT_EQ(values[1], 0x0102abcdu);
  EXPECT_EQ(values[50], 0x07070707u);
  EXPECT_EQ(values[99], 0x01020304u);
}

TEST_F(Memory, OverlappingCopiesAreUndefined) {
  const std::vector<int> values = {1, 2, 3, 4};
  int* memory = upload(values);
  ASSERT_EQ(copy_on_device_now(memory + 1, memory, 3 * sizeof(int)), 0);
  EXPECT_NE(download(memory + 1, 3), (std::vector<int>{1, 2, 3}));
}

TEST_F(Memory, DevicesCopyToOneAnother) {
  const std::vector<int> values = {1, 2, 3};
  int* first = upload(values);
  use_device(1);
  int* second = alloc<int>(3);
  ASSERT_EQ(copy_on_device_now(second, first, sizeof(int) * 3), 0);
  EXPECT_EQ(download(second, 3), values);
  use_device(0);
}

TEST_F(Memory, ThePoolReusesMemoryInStreamOrder) {
  StreamHandle stream = make_stream(), other = make_stream();
  void *first = nullptr, *second = nullptr, *third = nullptr;
  ASSERT_EQ(pool_alloc(&first, 5000, stream), 0);
  // The stream is busy, so what it frees is free for itself alone.
  ASSERT_EQ(launch_host(
                stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); },
                nullptr),
            0);
  ASSERT_EQ(pool_free(first, stream), 0);
  ASSERT_EQ(pool_alloc(&second, 5000, other), 0);
  EXPECT_NE(second, first);
  ASSERT_EQ(pool_alloc(&third, 5000, stream), 0);
  EXPECT_EQ(third, first);
  ASSERT_EQ(stream_sync(stream), 0);
  ASSERT_EQ(pool_free(second, other), 0);
  ASSERT_EQ(pool_free(third, stream), 0);
  EXPECT_EQ(pool_free(third, stream), 1);

  PoolHandle pool = nullptr;
  uint64_t reserved = 0, used = 0;
  ASSERT_EQ(pool_of_device(&pool, 0), 0);
  ASSERT_EQ(pool_get(pool, 5, &reserved), 0);
  ASSERT_EQ(pool_get(pool, 7, &used), 0);
  EXPECT_EQ(used, 0u);
  EXPECT_EQ(reserved, 16384u);
  ASSERT_EQ(pool_trim(pool, 0), 0);
  ASSERT_EQ(pool_get(pool, 5, &reserved), 0);
  EXPECT_EQ(reserved, 0u);
}

}  // namespace
