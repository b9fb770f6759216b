// SPDX-License-Identifier: Apache-2.0
// A hundred threads on one device: they allocate, compute, copy, hand tensors to each other and
// free them, each on a stream of its own. Run under ThreadSanitizer too (make tsan).
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/runtime/stream.hpp"
#include "tests/core/fake_device.hpp"
#include "tests/core/fake_plugins.hpp"

namespace tenon::test {
namespace {

struct Cached {};
struct FromPool {};

constexpr int kThreads = 100;
constexpr int kRounds = 40;
constexpr int64_t kElements = 300;

// out = x + x, at once: the fake streams have nothing to order. A scratch block is filled on the
// way.
tenon_status doubling_kernel(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                             uint32_t, tenon_err* err) {
  auto *x = as_tensor(args[0]), *y = as_tensor(args[1]), *out = as_tensor(outs[0]);
  void* scratch = nullptr;
  TENON_TRY(slots::scratch(ctx, 64, &scratch, err));
  std::memset(scratch, 0xff, 64);
  for (int64_t i = 0; i < out->numel; ++i)
    static_cast<float*>(out->data)[i] =
        static_cast<const float*>(x->data)[i] + static_cast<const float*>(y->data)[i];
  return TENON_OK;
}

void add_kernel_for(const char* kind) {
  static const int owner = 0;
  tenon_kernel_def def{};
  def.struct_size = sizeof def;
  def.op = "fake::add";
  def.device = kind;
  def.dtype_mask = 1u << TENON_DTYPE_F32;
  def.boxed = doubling_kernel;
  ASSERT_EQ(registry_add({"threads", "", {}, {&def, 1}}, &owner, nullptr), TENON_OK);
}

// A tensor that one thread leaves for another.
struct Mailbox {
  std::mutex mutex;
  TensorRef tensor;

  TensorRef swap(TensorRef mine) {
    std::lock_guard lock(mutex);
    std::swap(tensor, mine);
    return mine;
  }
};

std::vector<float> read(tenon_tensor* tensor) {
  std::vector<float> values(kElements);
  tenon_tensor* host = nullptr;
  int64_t shape = kElements;
  EXPECT_EQ(slots::tensor_create(fake::host_device(), TENON_DTYPE_F32, 1, &shape, &host, nullptr),
            TENON_OK);
  TensorRef held(impl(host));
  EXPECT_EQ(slots::tensor_copy(host, tensor, nullptr), TENON_OK);
  std::memcpy(values.data(), host->data, kElements * sizeof(float));
  return values;
}

void work(Device& device, int number, Mailbox& mailbox, std::atomic<int>& wrong) {
  tenon_stream stream = nullptr;
  tenon_event event = nullptr;
  if (slots::stream_create(device.id, 0, &stream, nullptr) != TENON_OK) ++wrong;
  if (slots::event_create(device.id, &event, nullptr) != TENON_OK) ++wrong;
  slots::stream_set_current(device.id, stream);
  for (int round = 0; round < kRounds; ++round) {
    float value = static_cast<float>(number * kRounds + round);
    TensorRef source = fake::tensor({kElements}, {});
    for (int64_t i = 0; i < kElements; ++i) static_cast<float*>(source->data)[i] = value;
    int64_t shape = kElements;
    tenon_tensor* created = nullptr;
    if (slots::tensor_create(device.id, TENON_DTYPE_F32, 1, &shape, &created, nullptr) != TENON_OK)
      ++wrong;
    TensorRef x(impl(created));
    if (slots::tensor_copy(x.get(), source.get(), nullptr) != TENON_OK) ++wrong;
    fake::Result sum = fake::call("fake::add", {fake::value(x), fake::value(x)});
    if (sum.status != TENON_OK) ++wrong;
    slots::event_record(device.id, event, stream, nullptr);
    if (slots::event_sync(device.id, event, nullptr) != TENON_OK) ++wrong;
    for (float element : read(sum.tensor.get())) wrong += element != 2 * value;
    // Another thread's, made on another stream: all its elements are alike, or its memory was
    // reused.
    TensorRef other = mailbox.swap(std::move(sum.tensor));
    if (!other) continue;
    fake::Result again = fake::call("fake::add", {fake::value(other), fake::value(x)});
    if (again.status != TENON_OK) ++wrong;
    std::vector<float> values = read(again.tensor.get());
    for (float element : values) wrong += element != values[0];
    if (round % 16 == number % 16) {
      uint64_t released;
      if (slots::memory_trim(device.id, &released, nullptr) != TENON_OK) ++wrong;
    }
  }
  slots::stream_set_current(device.id, nullptr);
  slots::event_destroy(device.id, event);
  slots::stream_destroy(device.id, stream);
}

void expect_a_hundred_threads_work(Device& device, FakeState& state) {
  std::atomic<int> wrong{0};
  {
    Mailbox mailboxes[7];
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number)
      threads.emplace_back([&, number] { work(device, number, mailboxes[number % 7], wrong); });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(wrong, 0);
  UsageTotals usage = DeviceMemory::of(device).usage().totals();
  EXPECT_EQ(usage.current, 0);
  EXPECT_EQ(usage.allocations, usage.frees);
  uint64_t released;
  EXPECT_EQ(slots::memory_trim(device.id, &released, nullptr), TENON_OK);
  EXPECT_TRUE(state.live.empty()) << state.live_bytes << " bytes were not given back";
  EXPECT_EQ(state.wrong_frees, 0u);
}

TEST(Threads, ShareOneDevice) {
  fake::install();
  Device& device = Fake<Cached>::device("threads", 0, true);
  add_kernel_for("threads");
  expect_a_hundred_threads_work(device, Fake<Cached>::state());
}

TEST(Threads, ShareOneDeviceWithAPool) {
  fake::install();
  Device& device = Fake<FromPool>::device("threadpool", 0, true, true);
  add_kernel_for("threadpool");
  expect_a_hundred_threads_work(device, Fake<FromPool>::state());
}

}  // namespace
}  // namespace tenon::test
