// SPDX-License-Identifier: Apache-2.0
// A tensor, its storage and its data in one block: who keeps the block, and until when.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "kernel_core/runtime/tensor.hpp"
#include "tests/core/allocations.hpp"
#include "tests/core/fake_device.hpp"

namespace tenon::test {
namespace {

struct Host {};
struct Plain {};

constexpr int64_t kLarge = 1 << 20;  // elements: data apart

struct TensorBlock : testing::Test {
  Device& host = Fake<Host>::device("fakeblocks", TENON_DEVICE_HOST_MEMORY);
  Device& plain = Fake<Plain>::device("fakeapart", 0);

  TensorRef make(std::vector<int64_t> shape, Device* device = nullptr) {
    TensorRef tensor;
    int32_t ndim = static_cast<int32_t>(shape.size());
    EXPECT_EQ(create_tensor(device ? *device : host, TENON_DTYPE_F32, ndim, shape.data(),
                            tensor.receive(), nullptr),
              TENON_OK);
    return tensor;
  }
  TensorRef view(const TensorRef& of) {
    tenon_tensor* made = nullptr;
    int64_t shape = 1, stride = 1;
    EXPECT_EQ(
        slots::tensor_view_of(of.get(), TENON_DTYPE_F32, 1, &shape, &stride, 0, &made, nullptr),
        TENON_OK);
    return TensorRef(impl(made));
  }
  // Of its second element; keeps the storage and not the tensor.
  TensorRef storage_view(const TensorRef& of) {
    TensorRef made;
    int64_t shape = 1, stride = 1;
    EXPECT_EQ(
        create_view(*of.get(), TENON_DTYPE_F32, 1, &shape, &stride, 1, made.receive(), nullptr),
        TENON_OK);
    return made;
  }
  void assign(const TensorRef& to, const TensorRef& from) {
    EXPECT_EQ(slots::tensor_assign(to.get(), from.get(), nullptr), TENON_OK);
  }
  int64_t bytes_in_use(Device& device) { return DeviceMemory::of(device).usage().totals().current; }
  bool is_whole(const TensorRef& tensor) { return tensor->data == tensor.get() + 1; }

  void SetUp() override { make({1}), make({1}, &plain); }  // makes the devices' memories
};

TEST_F(TensorBlock, HoldsSmallDataOfTheHostAndNoOther) {
  TensorRef scalar = make({}), row = make({3}), most = make({256}), box = make({1, 2, 3, 4, 5});
  for (const TensorRef* tensor : {&scalar, &row, &most, &box}) {
    EXPECT_TRUE(is_whole(*tensor));
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*tensor)->data) % 64, 0u);
    std::memset((*tensor)->data, 0x5a, static_cast<size_t>((*tensor)->numel) * 4);
  }
  EXPECT_EQ(box->strides[0], 120);
  EXPECT_FALSE(is_whole(make({257})));
  EXPECT_FALSE(is_whole(make({1, 1, 1, 1, 1, 1})));  // its dimensions are apart already
  EXPECT_FALSE(is_whole(make({1}, &plain)));
  EXPECT_EQ(make({0})->data, nullptr);
}

TEST_F(TensorBlock, CountsWhatWasAskedForAlone) {
  int64_t before = bytes_in_use(host);
  TensorRef row = make({3});
  EXPECT_EQ(bytes_in_use(host) - before, 12);
  row = {};
  EXPECT_EQ(bytes_in_use(host), before);
}

TEST_F(TensorBlock, LivesAsLongAsAViewOfIt) {
  for (Device* device : {&host, &plain})
    for (int64_t size : {int64_t{3}, kLarge}) {
      int64_t before = bytes_in_use(*device);
      TensorRef tensor = make({size}, device);
      TensorRef kept = storage_view(tensor);
      if (device == &host) static_cast<float*>(kept->data)[0] = 7;
      tensor = {};
      EXPECT_EQ(bytes_in_use(*device) - before, size * 4);
      TensorRef others[8];
      for (TensorRef& other : others) {  // in what would be its block
        other = make({size}, device);
        if (device == &host) std::memset(other->data, 0, static_cast<size_t>(size) * 4);
      }
      if (device == &host) {
        EXPECT_EQ(static_cast<float*>(kept->data)[0], 7);
      }
      for (TensorRef& other : others) other = {};
      kept = {};
      EXPECT_EQ(bytes_in_use(*device), before);
    }
}

TEST_F(TensorBlock, OutlivesAStorageThatWasReplaced) {
  for (int64_t size : {int64_t{3}, kLarge}) {
    int64_t before = bytes_in_use(host);
    TensorRef tensor = make({size}), other = make({2}), held = view(tensor);
    assign(tensor, other);
    EXPECT_EQ(tensor->storage, other->storage);
    EXPECT_EQ(bytes_in_use(host) - before, size * 4 + 8);
    held = {};
    // Large memory goes with its last user; small data stay with the tensor's block.
    EXPECT_EQ(bytes_in_use(host) - before, (size == kLarge ? 0 : size * 4) + 8);
    assign(tensor, make({5}));
    other = {};
    tensor = {};
    EXPECT_EQ(bytes_in_use(host), before);
  }
}

TEST_F(TensorBlock, GoesWithAViewThatOutlivesAnAssignedTensor) {
  int64_t before = bytes_in_use(host);
  TensorRef tensor = make({3}), other = make({2});
  TensorRef held = storage_view(tensor);
  assign(tensor, other);
  tensor = {};
  *static_cast<float*>(held->data) = 5;
  other = {};
  EXPECT_EQ(bytes_in_use(host) - before, 12);
  held = {};
  EXPECT_EQ(bytes_in_use(host), before);
}

TEST_F(TensorBlock, TakesItsOwnStorageBack) {
  int64_t before = bytes_in_use(host);
  TensorRef tensor = make({3}), held = view(tensor), other = make({2});
  assign(tensor, other);
  assign(tensor, held);
  EXPECT_EQ(tensor->storage, &tensor->own);
  held = {};
  tensor = {};
  other = {};
  EXPECT_EQ(bytes_in_use(host), before);
}

TEST_F(TensorBlock, WrapsForeignMemoryAndDropsItOnce) {
  int dropped = 0;
  float data[4] = {1, 2, 3, 4};
  int64_t shape = 4;
  tenon_tensor* made = nullptr;
  ASSERT_EQ(slots::tensor_wrap(
                host.id, TENON_DTYPE_F32, 1, &shape, nullptr, data, 0,
                [](void* count) { ++*static_cast<int*>(count); }, &dropped, &made, nullptr),
            TENON_OK);
  TensorRef tensor{impl(made)};
  EXPECT_EQ(slots::tensor_storage_use_count(made), 1u);
  EXPECT_EQ(slots::tensor_storage_bytes(made), 16u);
  TensorRef part = view(tensor);
  assign(tensor, make({2}));
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(*static_cast<float*>(part->data), 1);
  part = {};
  EXPECT_EQ(dropped, 1);
  shape = INT64_MAX / 32;
  int64_t too_far = 1000;  // is refused, and nothing is dropped
  EXPECT_NE(slots::tensor_wrap(
                host.id, TENON_DTYPE_F32, 1, &shape, &too_far, data, 0,
                [](void* count) { ++*static_cast<int*>(count); }, &dropped, &made, nullptr),
            TENON_OK);
  tensor = {};
  EXPECT_EQ(dropped, 1);
}

TEST_F(TensorBlock, IsFoundInThePluginsMemory) {
  TensorRef row = make({3});
  void* memory = nullptr;
  uint64_t bytes = 0, offset = 0;
  ASSERT_EQ(slots::memory_origin(row.get(), &memory, &bytes, &offset, nullptr), TENON_OK);
  EXPECT_EQ(static_cast<char*>(memory) + offset, row->data);
  EXPECT_LT(offset + 12, bytes + 1);
}

// One thread drops the tensor while another drops the last view.
TEST_F(TensorBlock, EndsOnceWhoeverIsLast) {
  int64_t before = bytes_in_use(host);
  for (int round = 0; round < 300; ++round) {
    TensorRef tensor = make({3}), other = make({2});
    TensorRef held = storage_view(tensor);
    if (round % 2) assign(tensor, other);
    std::atomic<bool> go{false};
    std::thread thread([&] {
      while (!go) {
      }
      held = {};
    });
    go = true;
    tensor = {};
    thread.join();
  }
  EXPECT_EQ(bytes_in_use(host), before);
}

}  // namespace
}  // namespace tenon::test
