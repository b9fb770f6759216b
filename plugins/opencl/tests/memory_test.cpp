// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "support.hpp"

namespace opencl_test {
namespace {

class OpenclMemory : public DeviceTest {};

std::vector<uint8_t> numbered(size_t bytes) {
  std::vector<uint8_t> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(i * 31 + 7);
  return data;
}

TEST_F(OpenclMemory, DevicesDescribeThemselves) {
  tenon_device_info info = {};
  uint32_t count = 0;
  EXPECT_OK(api()->enumerate(&info, 1, &count, err));
  EXPECT_GE(count, 1u);
  EXPECT_EQ(info.flags, 0u);
  EXPECT_STRNE(info.name, "");
  EXPECT_EQ(std::string(info.arch).substr(0, 7), "OpenCL ");
  EXPECT_EQ(std::string(info.bus_id).substr(0, 9), "platform ");
  EXPECT_GT(info.memory_bytes, 0u);
  tenon_device device = nullptr;
  EXPECT_FAILS(TENON_NOT_FOUND, "expected an index below", api()->open(200, &device, err));
  EXPECT_EQ(device, nullptr);
}

TEST_F(OpenclMemory, PlatformsAreChosenByNumberOrName) {
  uint32_t count = 0;
  setenv("TENON_OPENCL_PLATFORM", "0", 1);
  EXPECT_OK(api()->enumerate(nullptr, 0, &count, err));
  setenv("TENON_OPENCL_PLATFORM", "no such platform", 1);
  EXPECT_FAILS(TENON_NOT_FOUND, "got 'no such platform'; there are 0 (",
               api()->enumerate(nullptr, 0, &count, err));
  unsetenv("TENON_OPENCL_PLATFORM");
}

TEST_F(OpenclMemory, IsAlignedAndDistinct) {
  std::vector<uintptr_t> seen;
  for (uint64_t align : {1, 64, 512, 4096, 4 << 20}) {
    auto address = reinterpret_cast<uintptr_t>(allocate(1000, align));
    EXPECT_EQ(address % align, 0u);
    for (uintptr_t other : seen) EXPECT_TRUE(address >= other + 1000 || other >= address + 1000);
    seen.push_back(address);
  }
}

TEST_F(OpenclMemory, AddressesAreUsedAgain) {
  tenon_alloc_request request = {sizeof request, TENON_ALLOC_DEVICE, 0, 3 << 20, 512, nullptr};
  void* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    void* memory = nullptr;
    EXPECT_OK(api()->alloc(device_, &request, &memory, err));
    if (!first) first = memory;
    EXPECT_EQ(memory, first);
    api()->free(device_, memory, request.bytes, nullptr);
  }
}

TEST_F(OpenclMemory, RunsOutWithACodeAndLivesOn) {
  void* memory = nullptr;
  tenon_alloc_request request = {sizeof request, TENON_ALLOC_DEVICE, 0, uint64_t{1} << 50, 512,
                                 nullptr};
  EXPECT_FAILS(TENON_OUT_OF_MEMORY, "alloc 1125899906842624 B: the device's buffers have at most",
               api()->alloc(device_, &request, &memory, err));
  request.bytes = UINT64_MAX;
  EXPECT_FAILS(TENON_OUT_OF_MEMORY, "at most", api()->alloc(device_, &request, &memory, err));
  request.kind = TENON_ALLOC_PINNED;
  EXPECT_FAILS(TENON_OUT_OF_MEMORY, "at most", api()->alloc(device_, &request, &memory, err));
  EXPECT_EQ(memory, nullptr);
  EXPECT_NE(allocate(4096), nullptr);
}

TEST_F(OpenclMemory, RefusesRequestsThatItCannotServe) {
  void* memory = nullptr;
  tenon_alloc_request request = {sizeof request, TENON_ALLOC_MANAGED, 0, 4096, 512, nullptr};
  EXPECT_FAILS(TENON_UNSUPPORTED, "got kind 2", api()->alloc(device_, &request, &memory, err));
  request.kind = TENON_ALLOC_DEVICE;
  request.align = 48;
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "a power of two, got 4096 and 48",
               api()->alloc(device_, &request, &memory, err));
  request.must_understand = uint64_t{1} << 63;
  EXPECT_FAILS(TENON_UNSUPPORTED, "does not know", api()->alloc(device_, &request, &memory, err));
}

TEST_F(OpenclMemory, CopiesEveryOffsetAndLength) {
  const std::vector<uint8_t> data = numbered(300);
  for (size_t offset : {0, 1, 3, 64, 255}) {
    for (size_t bytes : {0, 1, 2, 7, 45}) {
      char* memory = static_cast<char*>(device_copy(std::vector<uint8_t>(300, 0xee)));
      char* other = static_cast<char*>(device_copy(std::vector<uint8_t>(300, 0xdd)));
      write(memory + offset, &data[offset], bytes);
      move(other + offset, memory + offset, bytes);
      std::vector<uint8_t> expected(300, 0xdd);
      std::copy_n(&data[offset], bytes, &expected[offset]);
      EXPECT_EQ(values<uint8_t>(other, 300), expected) << offset << " " << bytes;
    }
  }
}

TEST_F(OpenclMemory, OverlappingCopiesMove) {
  for (int distance : {-100, -1, 0, 1, 100}) {
    std::vector<uint8_t> expected = numbered(4096);
    char* memory = static_cast<char*>(device_copy(expected));
    move(memory + 200 + distance, memory + 200, 3000);
    std::memmove(&expected[static_cast<size_t>(200 + distance)], &expected[200], 3000);
    EXPECT_EQ(values<uint8_t>(memory, 4096), expected) << distance;
  }
}

TEST_F(OpenclMemory, FillsWithEveryPatternAtEveryOffset) {
  const std::vector<uint8_t> pattern = numbered(16);
  for (uint32_t size : {1, 2, 4, 8, 16}) {
    for (uint64_t offset : {0, 16, 24, 5}) {
      std::vector<uint8_t> expected(400, 0xee);
      void* memory = device_copy(expected);
      set(memory, offset, 20 * size, pattern.data(), size);
      for (uint64_t i = 0; i < 20 * size; ++i) expected[offset + i] = pattern[i % size];
      EXPECT_EQ(values<uint8_t>(memory, 400), expected) << size << " " << offset;
    }
  }
  // Longer than the pieces that odd offsets are written in.
  char* memory = static_cast<char*>(allocate(5 << 20));
  uint64_t word = 0x1122334455667788;
  set(memory, 3, (2 << 20) + 8, &word, 8);
  EXPECT_EQ(values<uint64_t>(memory + 3, (2 << 17) + 1),
            std::vector<uint64_t>((2 << 17) + 1, word));
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "got 7 B of 4 B each",
               api()->fill(device_, memory, 0, 7, &word, 4, nullptr, err));
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "got 9 B of 3 B each",
               api()->fill(device_, memory, 0, 9, &word, 3, nullptr, err));
}

TEST_F(OpenclMemory, WrongAddressesAreErrors) {
  char* memory = static_cast<char*>(allocate(1000));
  char there[64] = {};
  tenon_copy_request request = {
      sizeof request, TENON_COPY_HOST_TO_DEVICE, 0, memory + 990, there, 64, 0, 0, nullptr};
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "got an address 990 B into one of 1000 B",
               api()->copy(device_, &request, err));
  request.dst = there;
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "expected memory of this device",
               api()->copy(device_, &request, err));
  request.dst = memory;
  request.src = memory + 100;
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "expected host memory", api()->copy(device_, &request, err));
  request.direction = 9;
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "got 9", api()->copy(device_, &request, err));
  request.bytes = 0;
  EXPECT_OK(api()->copy(device_, &request, err));
  request.must_understand = 1;
  EXPECT_FAILS(TENON_UNSUPPORTED, "does not know", api()->copy(device_, &request, err));
}

TEST_F(OpenclMemory, PinnedMemoryCopiesInBothDirections) {
  tenon_alloc_request request = {sizeof request, TENON_ALLOC_PINNED, 0, 1 << 16, 4096, nullptr};
  void* pinned = nullptr;
  EXPECT_OK(api()->alloc(device_, &request, &pinned, err));
  ASSERT_NE(pinned, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned) % 4096, 0u);
  auto* words = static_cast<uint32_t*>(pinned);
  std::iota(words, words + (1 << 14), 0u);
  tenon_stream stream = new_stream();
  void* memory = allocate(1 << 16);
  write(memory, pinned, 1 << 16, stream);
  EXPECT_OK(api()->sync(device_, stream, err));
  std::memset(pinned, 0, 1 << 16);
  read(pinned, memory, 1 << 16, stream);
  EXPECT_OK(api()->sync(device_, stream, err));
  for (uint32_t i = 0; i < 1 << 14; ++i) ASSERT_EQ(words[i], i);
  api()->free(device_, pinned, 1 << 16, stream);
}

}  // namespace
}  // namespace opencl_test
