// SPDX-License-Identifier: Apache-2.0
// Optional groups that the core itself uses: pool, quiesce, and the memory of recorded work.
#include <gtest/gtest.h>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/runtime/tensor.hpp"
#include "tests/core/fake_device.hpp"

namespace tenon::test {
namespace {

// One fake kind each.
struct Borrowed {};
struct Held {};
struct HeldPool {};
struct Origin {};
struct PoolHost {};
struct Pooled {};
struct PooledAsync {};
struct Restless {};

constexpr uint64_t kMiB = 1 << 20;

void* take(Device& device, uint64_t bytes, tenon_stream stream = nullptr) {
  tenon_err err;
  void* data = nullptr;
  EXPECT_EQ(allocate(device, bytes, stream, &data, &err), TENON_OK) << err.text;
  return data;
}

tenon_stream new_stream(Device& device) {
  tenon_stream stream = nullptr;
  EXPECT_EQ(slots::stream_create(device.id, 0, &stream, nullptr), TENON_OK);
  return stream;
}

uint64_t trim(Device& device) {
  uint64_t released = 0;
  EXPECT_EQ(slots::memory_trim(device.id, &released, nullptr), TENON_OK);
  return released;
}

MemorySummary summary(Device& device) { return DeviceMemory::of(device).summary(); }

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(Pool, ServesEveryAllocationAndTakesItBackAtOnce) {
  Device& device = Fake<Pooled>::device("pooled", 0, false, true);
  FakeState& state = Fake<Pooled>::state();
  for (uint64_t bytes : {4u, 1000u, 70000u, 3000000u}) {
    void* data = take(device, bytes);
    ASSERT_EQ(state.live.count(data), 1u) << "not the pool's own block";
    EXPECT_EQ(state.live[data], bytes) << "the size was changed on the way";
    deallocate(device, data, bytes, nullptr);
    EXPECT_TRUE(state.live.empty()) << "the host kept a block";
  }
  EXPECT_EQ(state.wrong_frees, 0u);
  EXPECT_EQ(state.pool_kept, 3071004u);
  void* kept = take(device, 1000);
  EXPECT_EQ(summary(device).reserved, 3072004u) << "statistics are the pool's";
  EXPECT_EQ(summary(device).handed, 1000u);
  EXPECT_EQ(trim(device), 3071004u);
  EXPECT_EQ(summary(device).reserved, 1000u);
  tenon_err err;
  EXPECT_EQ(remove_device_kind(TENON_DEVICE_KIND(device.id), &err), TENON_FAILED_PRECONDITION);
  EXPECT_TRUE(contains(err.text, "pooled:0 has 1 memory block(s) of together 1000 B")) << err.text;
  deallocate(device, kept, 1000, nullptr);
}

TEST(Pool, IsUsedForHostMemoryToo) {
  Device& device = Fake<PoolHost>::device("poolhost", TENON_DEVICE_HOST_MEMORY, false, true);
  void* data = take(device, 100);
  EXPECT_EQ(Fake<PoolHost>::state().live.count(data), 1u);
  deallocate(device, data, 100, nullptr);
  EXPECT_TRUE(Fake<PoolHost>::state().live.empty());
}

TEST(Pool, IsTrimmedBeforeMemoryIsOut) {
  Device& device = Fake<Pooled>::device("pooled", 0, false, true);
  FakeState& state = Fake<Pooled>::state();
  trim(device);
  state.capacity = 4 * kMiB;
  void* data = take(device, 3 * kMiB);
  deallocate(device, data, 3 * kMiB, nullptr);
  data = take(device, 2 * kMiB);  // fits only once the pool has let go
  tenon_err err;
  void* more = nullptr;
  EXPECT_EQ(allocate(device, 3 * kMiB, nullptr, &more, &err), TENON_OUT_OF_MEMORY);
  EXPECT_TRUE(contains(err.text, "requested 3.00 MiB")) << err.text;
  EXPECT_TRUE(contains(err.text, "the plugin said: pooled:0 > pool_alloc > pool error 2"))
      << err.text;
  deallocate(device, data, 2 * kMiB, nullptr);
  state.capacity = UINT64_MAX;
}

TEST(Pool, IsNotBelieved) {
  Device& device = Fake<Pooled>::device("pooled", 0, false, true);
  FakeState& state = Fake<Pooled>::state();
  auto error = [&] {
    tenon_err err;
    void* data = nullptr;
    EXPECT_EQ(allocate(device, 1000, nullptr, &data, &err), TENON_INTERNAL);
    return err.text;
  };
  void* data = take(device, 1000);
  state.alloc_repeats = true;
  EXPECT_TRUE(contains(error(), "pooled:0 > pool_alloc: returned 0x"));
  state.alloc_repeats = false;
  state.alloc_returns_null = true;
  EXPECT_TRUE(contains(error(), "pooled:0 > pool_alloc: returned OK and no memory"));
  state.alloc_returns_null = false;
  state.alloc_misaligns = true;
  EXPECT_TRUE(contains(error(), "expected memory aligned to 512"));
  state.alloc_misaligns = false;
  deallocate(device, data, 1000, nullptr);
  EXPECT_EQ(state.wrong_frees, 0u);
}

TEST(Pool, GetsABlockBackOnlyWhenOtherStreamsAreDone) {
  Device& device = Fake<PooledAsync>::device("pooledasync", 0, true, true);
  FakeState& state = Fake<PooledAsync>::state();
  tenon_stream owner = new_stream(device), other = new_stream(device);
  void* data = take(device, 1000, owner);
  EXPECT_EQ(state.allocated_on, owner);
  other->queued = 1;
  record_use(device, data, other);
  deallocate(device, data, 1000, owner);
  EXPECT_EQ(state.live.count(data), 1u) << "given back while another stream uses it";
  EXPECT_EQ(summary(device).pending, 1000u);
  other->done = 1;
  trim(device);
  EXPECT_TRUE(state.live.empty());
  EXPECT_EQ(state.freed_on, owner);

  data = take(device, 1000, owner);
  slots::stream_destroy(device.id, owner);
  deallocate(device, data, 1000, owner);
  EXPECT_EQ(state.freed_on, nullptr) << "the stream was gone";
  slots::stream_destroy(device.id, other);
}

TEST(Quiesce, KeepsThePluginUntilItsThreadsHaveStopped) {
  using F = Fake<Restless>;
  F::state().kind = "restless";
  static tenon_device_api api = F::table(false, false, true);
  uint32_t kind;
  ASSERT_EQ(add_device_kind(&api, nullptr, &kind, nullptr), TENON_OK);
  Device& device = *find_device(TENON_DEVICE_ID(kind, 0));
  F::state().quiesce_status = TENON_DEADLINE_EXCEEDED;
  tenon_err err;
  EXPECT_EQ(remove_device_kind(kind, &err), TENON_DEADLINE_EXCEEDED);
  EXPECT_EQ(err.text,
            "restless > quiesce > its threads and callbacks did not come to rest within 5 s");
  EXPECT_EQ(F::state().closed, 1u) << "no device may be open while the plugin comes to rest";
  // Still usable: opened once more.
  EXPECT_EQ(find_device(TENON_DEVICE_ID(kind, 0)), &device);
  deallocate(device, take(device, 1000), 1000, nullptr);
  EXPECT_EQ(F::state().opened, 2u);
  F::state().quiesce_status = TENON_OK;
  EXPECT_EQ(remove_device_kind(kind, nullptr), TENON_OK);
  EXPECT_EQ(F::state().quiesced, 2u);
  EXPECT_EQ(slots::device_kind_name(kind), nullptr);
}

TEST(Groups, InUseKeepTheirDeviceOpen) {
  Device& device = Fake<Borrowed>::device("borrowed", 0, true, true);
  const void* table = nullptr;
  tenon_device handle = nullptr;
  ASSERT_EQ(slots::device_group_borrow(device.id, TENON_GROUP_ASYNC, &table, &handle, nullptr),
            TENON_OK);
  ASSERT_EQ(slots::device_group_borrow(device.id, TENON_GROUP_POOL, &table, &handle, nullptr),
            TENON_OK);
  ASSERT_EQ(slots::device_group_borrow(device.id, TENON_GROUP_POOL, &table, &handle, nullptr),
            TENON_OK);
  EXPECT_EQ(table, &Fake<Borrowed>::kPool);
  tenon_err err;
  EXPECT_EQ(remove_device_kind(TENON_DEVICE_KIND(device.id), &err), TENON_FAILED_PRECONDITION);
  EXPECT_TRUE(
      contains(err.text, "borrowed:0 has 1 user of its `async` group, 2 users of its `pool` group"))
      << err.text;
  err = {};
  EXPECT_EQ(slots::device_group_borrow(device.id, TENON_GROUP_GRAPH, &table, &handle, &err),
            TENON_UNSUPPORTED);
  EXPECT_EQ(err.text, "borrowed:0 has no `graph` group; its plugin does not provide it");
  for (int32_t group : {TENON_GROUP_ASYNC, TENON_GROUP_POOL, TENON_GROUP_POOL})
    slots::device_group_return(device.id, group);
  EXPECT_EQ(remove_device_kind(TENON_DEVICE_KIND(device.id), nullptr), TENON_OK);
}

// The same promise with the host's cache and with the plugin's pool.
template <class Tag>
void expect_holds(const char* kind, bool with_pool) {
  Device& device = Fake<Tag>::device(kind, 0, true, with_pool);
  FakeState& state = Fake<Tag>::state();
  tenon_stream stream = new_stream(device);
  void* before = take(device, 5000, stream);
  void* input = take(device, 7000);
  void* bystander = take(device, 9000, stream);
  uint64_t hold = 0, second = 0;
  ASSERT_EQ(slots::memory_hold_begin(device.id, stream, &hold, nullptr), TENON_OK);
  tenon_err err;
  EXPECT_EQ(slots::memory_hold_begin(device.id, stream, &second, &err), TENON_FAILED_PRECONDITION);
  EXPECT_TRUE(contains(err.text, "is being noted already")) << err.text;

  // Recorded work uses two older blocks and makes two of its own, of which one dies on the way.
  record_use(device, before, stream);
  record_use(device, input, stream);
  void* temporary = take(device, 11000, stream);
  EXPECT_EQ(state.allocated_on, nullptr)
      << "an allocation on this stream might be recorded as well";
  deallocate(device, temporary, 11000, stream);
  void* result = take(device, 11000, stream);
  EXPECT_NE(result, temporary);
  ASSERT_EQ(slots::memory_hold_end(device.id, hold, nullptr), TENON_OK);
  err = {};
  EXPECT_EQ(slots::memory_hold_end(device.id, hold, &err), TENON_FAILED_PRECONDITION);

  // All released, and the stream goes: what the recording uses is not reused.
  for (auto [data, bytes] :
       {std::pair{before, 5000}, {input, 7000}, {result, 11000}, {bystander, 9000}})
    deallocate(device, data, static_cast<uint64_t>(bytes), data == input ? nullptr : stream);
  EXPECT_GE(summary(device).pending, 34000u);
  EXPECT_LE(summary(device).pending, 36000u) << "the bystander is held as well";
  slots::stream_destroy(device.id, stream);
  trim(device);
  std::vector<std::pair<void*, uint64_t>> fresh;
  for (uint64_t bytes : {5000u, 7000u, 9000u, 11000u, 11000u, 5000u})
    fresh.emplace_back(take(device, bytes), bytes);
  for (auto [data, bytes] : fresh)
    for (void* held : {before, input, temporary, result}) EXPECT_NE(data, held) << bytes;
  for (auto [data, bytes] : fresh) deallocate(device, data, bytes, nullptr);
  err = {};
  EXPECT_EQ(remove_device_kind(TENON_DEVICE_KIND(device.id), &err), TENON_FAILED_PRECONDITION);
  EXPECT_TRUE(contains(err.text, ":0 has 1 hold(s) of memory for recorded work")) << err.text;

  slots::memory_hold_release(device.id, hold);
  slots::memory_hold_release(device.id, hold);  // unknown by now: ignored
  EXPECT_EQ(summary(device).pending, 0u);
  trim(device);
  EXPECT_TRUE(state.live.empty());
  EXPECT_EQ(state.wrong_frees, 0u);
  EXPECT_EQ(remove_device_kind(TENON_DEVICE_KIND(device.id), nullptr), TENON_OK);
}

TEST(Hold, KeepsMemoryOfRecordedWorkFromTheCache) { expect_holds<Held>("held", false); }
TEST(Hold, KeepsMemoryOfRecordedWorkFromThePool) { expect_holds<HeldPool>("heldpool", true); }

TEST(Hold, WaitsForOtherStreamsAfterwards) {
  struct Tag {};
  Device& device = Fake<Tag>::device("heldlong", 0, true);
  tenon_stream stream = new_stream(device), other = new_stream(device);
  uint64_t first, second;
  void* data = take(device, 5000);
  for (uint64_t* hold : {&first, &second}) {
    ASSERT_EQ(slots::memory_hold_begin(device.id, stream, hold, nullptr), TENON_OK);
    record_use(device, data, stream);
    ASSERT_EQ(slots::memory_hold_end(device.id, *hold, nullptr), TENON_OK);
  }
  other->queued = 1;
  record_use(device, data, other);
  deallocate(device, data, 5000, nullptr);
  slots::memory_hold_release(device.id, second);
  trim(device);
  EXPECT_EQ(summary(device).pending, 5120u) << "the first recording still uses it";
  slots::memory_hold_release(device.id, first);
  EXPECT_EQ(summary(device).pending, 5120u) << "the other stream still uses it";
  other->done = 1;
  trim(device);
  EXPECT_EQ(summary(device).pending, 0u);
  for (tenon_stream one : {stream, other}) slots::stream_destroy(device.id, one);
}

TEST(Hold, NeedsAStreamOfItsOwn) {
  struct Tag {};
  Device& device = Fake<Tag>::device("heldnull", 0, true);
  uint64_t hold = 0;
  tenon_err err;
  EXPECT_EQ(slots::memory_hold_begin(device.id, nullptr, &hold, &err), TENON_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(err.text, "use a stream of your own")) << err.text;
  err = {};
  auto* nothing = reinterpret_cast<tenon_stream>(&hold);
  EXPECT_EQ(slots::memory_hold_begin(device.id, nothing, &hold, &err), TENON_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(err.text, "is not a live stream of heldnull:0")) << err.text;
}

TEST(TensorRecordUse, KeepsTheMemoryForTheStream) {
  struct Tag {};
  Device& device = Fake<Tag>::device("recorduse", 0, true);
  tenon_stream stream = new_stream(device);
  int64_t shape = 100;
  tenon_tensor* tensor;
  ASSERT_EQ(slots::tensor_create(device.id, TENON_DTYPE_F32, 1, &shape, &tensor, nullptr),
            TENON_OK);
  stream->queued = 1;
  slots::tensor_record_use(tensor, stream);
  slots::tensor_release(tensor);
  EXPECT_EQ(summary(device).pending, 512u);
  stream->done = 1;
  trim(device);
  EXPECT_EQ(summary(device).pending, 0u);
  slots::stream_destroy(device.id, stream);
}

TEST(MemoryOrigin, IsThePluginsAllocationAndTheOffsetInIt) {
  for (bool with_pool : {false, true}) {
    struct Cached {};
    struct FromPool {};
    Device& device = with_pool ? Fake<FromPool>::device("originpool", 0, false, true)
                               : Fake<Cached>::device("origin", 0);
    int64_t shape[] = {10, 100};
    tenon_tensor *filler, *tensor, *row;
    ASSERT_EQ(slots::tensor_create(device.id, TENON_DTYPE_F32, 2, shape, &filler, nullptr),
              TENON_OK);
    ASSERT_EQ(slots::tensor_create(device.id, TENON_DTYPE_F32, 2, shape, &tensor, nullptr),
              TENON_OK);
    int64_t columns = 100, stride = 1;
    ASSERT_EQ(slots::tensor_view(tensor, TENON_DTYPE_F32, 1, &columns, &stride, 300, &row, nullptr),
              TENON_OK);
    void* memory = nullptr;
    uint64_t bytes = 0, offset = 0;
    ASSERT_EQ(slots::memory_origin(row, &memory, &bytes, &offset, nullptr), TENON_OK);
    FakeState& state = with_pool ? Fake<FromPool>::state() : Fake<Cached>::state();
    ASSERT_EQ(state.live.count(memory), 1u);
    EXPECT_EQ(state.live[memory], bytes);
    EXPECT_EQ(static_cast<char*>(memory) + offset, static_cast<char*>(row->data));
    for (tenon_tensor* one : {row, tensor, filler}) slots::tensor_release(one);
  }
  Device& device = Fake<Origin>::device("originforeign", 0);
  float value[4];
  int64_t shape = 4;
  tenon_tensor* wrapped;
  ASSERT_EQ(slots::tensor_wrap(device.id, TENON_DTYPE_F32, 1, &shape, nullptr, value, 0, nullptr,
                               nullptr, &wrapped, nullptr),
            TENON_OK);
  void* memory;
  uint64_t bytes, offset;
  tenon_err err;
  EXPECT_EQ(slots::memory_origin(wrapped, &memory, &bytes, &offset, &err), TENON_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(err.text, "copy the tensor first")) << err.text;
  slots::tensor_release(wrapped);
}

}  // namespace
}  // namespace tenon::test
