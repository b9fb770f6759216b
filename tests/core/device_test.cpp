// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/runtime/random.hpp"
#include "kernel_core/runtime/stream.hpp"
#include "tests/core/fake_device.hpp"

namespace tenon::test {
namespace {

// One fake kind each.
struct Changing {};
struct Current {};
struct Driver {};
struct Memory {};
struct Lazy {};
struct Leased {};
struct Liar {};
struct OnDemand {};
struct Peers {};
struct Prefix {};
struct Refused {};
struct Streams {};
struct Taken {};

std::string add_error(const tenon_device_api& api, tenon_status expected = TENON_INVALID_ARGUMENT) {
  uint32_t kind;
  tenon_err err;
  EXPECT_EQ(add_device_kind(&api, nullptr, &kind, &err), expected);
  return err.text;
}

std::string find_error(const char* name, tenon_status expected) {
  tenon_device_id id;
  tenon_err err;
  EXPECT_EQ(slots::device_find(name, &id, &err), expected) << name;
  return err.text;
}

tenon_device_id find(const char* name) {
  tenon_device_id id = TENON_DEVICE_NONE;
  tenon_err err;
  EXPECT_EQ(slots::device_find(name, &id, &err), TENON_OK) << err.text;
  return id;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(DeviceTable, HasMetaFromTheStart) {
  EXPECT_EQ(find("meta"), TENON_DEVICE_META);
  EXPECT_EQ(find("meta:0"), TENON_DEVICE_META);
  EXPECT_STREQ(slots::device_kind_name(0), "meta");
  EXPECT_EQ(slots::device_count(0), 1u);
  EXPECT_STREQ(find_device(TENON_DEVICE_META)->name, "meta:0");
  tenon_copy_request request = {
      .struct_size = sizeof request, .direction = TENON_COPY_DEVICE_TO_HOST, .bytes = 4};
  tenon_err err;
  EXPECT_EQ(find_device(TENON_DEVICE_META)->api->copy(nullptr, &request, &err),
            TENON_FAILED_PRECONDITION);
  EXPECT_TRUE(contains(err.text, "no values to read"));
  EXPECT_EQ(remove_device_kind(0, nullptr), TENON_INVALID_ARGUMENT);
}

TEST(DeviceTable, RefusesTablesThatLackARequiredFunction) {
  using F = Fake<Refused>;
  F::state().kind = "refused";
  tenon_device_api api = F::table();
  api.fill = nullptr;
  EXPECT_TRUE(contains(add_error(api), "required function `fill` is missing"));
  api = F::table();
  api.struct_size = offsetof(tenon_device_api, sync);
  EXPECT_TRUE(contains(add_error(api), "required function `sync` is missing"));
  api.struct_size = 4;
  EXPECT_TRUE(contains(add_error(api), "expected struct_size >= 24"));
  api = F::table();
  api.features = 4;
  EXPECT_TRUE(contains(add_error(api), "features 0x4"));
  for (const char* name : {"", "Acme", "2acme", "acme-x", "a_name_of_17chars"}) {
    api = F::table();
    api.kind = name;
    EXPECT_TRUE(contains(add_error(api), "[a-z][a-z0-9_]{0,15}")) << name;
  }
  uint32_t kind;
  tenon_err err;
  EXPECT_EQ(add_device_kind(nullptr, nullptr, &kind, &err), TENON_INVALID_ARGUMENT);
  tenon_async_api half = F::kAsync;
  half.event_query = nullptr;
  api = F::table();
  api.async = &half;
  EXPECT_TRUE(contains(add_error(api), "`async` lacks `event_query`"));
}

TEST(DeviceTable, ReadsNoMemberPastTheSizeThatThePluginStates) {
  using F = Fake<Prefix>;
  F::state().kind = "prefix";
  static tenon_device_api api = F::table(true);
  api.struct_size = offsetof(tenon_device_api, async);
  uint32_t kind;
  ASSERT_EQ(add_device_kind(&api, nullptr, &kind, nullptr), TENON_OK);
  EXPECT_EQ(find_device(TENON_DEVICE_ID(kind, 0))->async, nullptr);
  EXPECT_EQ(remove_device_kind(kind, nullptr), TENON_OK);
}

TEST(DeviceTable, RefusesASecondPluginForAKindAndNamesBoth) {
  using F = Fake<Taken>;
  F::state().kind = "taken";
  static tenon_device_api api = F::table();
  uint32_t kind;
  ASSERT_EQ(add_device_kind(&api, nullptr, &kind, nullptr, "first 1.0 (/a.so)"), TENON_OK);
  tenon_err err;
  uint32_t other = 77;
  EXPECT_EQ(add_device_kind(&api, nullptr, &other, &err, "second 2.0 (/b.so)"),
            TENON_ALREADY_EXISTS);
  EXPECT_TRUE(contains(err.text, "first 1.0 (/a.so)"));
  EXPECT_TRUE(contains(err.text, "second 2.0 (/b.so)"));
  EXPECT_EQ(other, 77u);
  EXPECT_EQ(remove_device_kind(kind, nullptr), TENON_OK);
}

TEST(DeviceTable, OpensOnFirstUseAndOnce) {
  using F = Fake<Lazy>;
  F::state().kind = "lazy";
  F::state().device_count = 3;
  static tenon_device_api api = F::table();
  uint32_t kind;
  ASSERT_EQ(add_device_kind(&api, nullptr, &kind, nullptr), TENON_OK);
  EXPECT_EQ(slots::device_count(kind), 3u);
  EXPECT_EQ(F::state().opened, 0u);
  tenon_device_id id = find("lazy:2");
  EXPECT_EQ(id, TENON_DEVICE_ID(kind, 2));
  Device* device = find_device(id);
  EXPECT_EQ(find_device(id), device);
  EXPECT_EQ(F::state().opened, 1u);
  EXPECT_STREQ(device->name, "lazy:2");
  EXPECT_EQ(device_name(id), "lazy:2");
  EXPECT_TRUE(
      contains(find_error("lazy:3", TENON_NOT_FOUND), "lazy has 3 devices, there is no lazy:3"));
  EXPECT_EQ(remove_device_kind(kind, nullptr), TENON_OK);
  EXPECT_EQ(F::state().closed, 1u);
  EXPECT_EQ(find_device(id), nullptr);
  EXPECT_EQ(slots::device_kind_name(kind), nullptr);

  // The same name gets the same number and the same Device again.
  uint32_t again;
  ASSERT_EQ(add_device_kind(&api, nullptr, &again, nullptr), TENON_OK);
  EXPECT_EQ(again, kind);
  EXPECT_EQ(find_device(id), device);
  EXPECT_EQ(remove_device_kind(kind, nullptr), TENON_OK);
}

TEST(DeviceTable, ExplainsNamesThatItCannotFind) {
  for (const char* name :
       {"", ":0", "acme:", "acme:x", "acme:1x", "acme:-1", "Acme", "acme:99999999999"})
    EXPECT_TRUE(contains(find_error(name, TENON_INVALID_ARGUMENT), "expected a device such as"))
        << name;
  EXPECT_TRUE(contains(find_error("nowhere", TENON_NOT_FOUND),
                       "no device kind 'nowhere'; known kinds: meta"));
  EXPECT_TRUE(contains(find_error("meta:256", TENON_NOT_FOUND), "there is no meta:256"));
  EXPECT_EQ(find_device(TENON_DEVICE_NONE), nullptr);
  EXPECT_EQ(find_device(TENON_DEVICE_ID(200, 0)), nullptr);
  tenon_device_info info;
  EXPECT_EQ(slots::device_info(TENON_DEVICE_NONE, &info, nullptr), TENON_NOT_FOUND);
}

TEST(DeviceTable, AsksTheLoaderForUnknownKinds) {
  static tenon_device_api api;
  device_kind_loader = [](const char* kind, tenon_err* err) -> tenon_status {
    if (std::string(kind) == "broken")
      return fail(err, TENON_UNAVAILABLE, "libbroken.so: no such file");
    if (std::string(kind) != "ondemand") return TENON_OK;
    Fake<OnDemand>::state().kind = "ondemand";
    api = Fake<OnDemand>::table();
    uint32_t number;
    return add_device_kind(&api, nullptr, &number, err);
  };
  tenon_device_id id = find("ondemand:0");
  EXPECT_EQ(device_name(id), "ondemand:0");
  EXPECT_EQ(find_error("broken", TENON_UNAVAILABLE), "libbroken.so: no such file");
  find_error("absent", TENON_NOT_FOUND);
  device_kind_loader = nullptr;
  EXPECT_EQ(remove_device_kind(TENON_DEVICE_KIND(id), nullptr), TENON_OK);
}

TEST(DeviceTable, BelievesNoPlugin) {
  using F = Fake<Liar>;
  FakeState& state = F::state();
  state.kind = "liar";
  static tenon_device_api api = F::table();
  uint32_t kind;
  ASSERT_EQ(add_device_kind(&api, nullptr, &kind, nullptr), TENON_OK);
  state.device_count = 257;
  EXPECT_TRUE(contains(find_error("liar", TENON_INTERNAL), "at most 256 devices, got 257"));
  EXPECT_EQ(slots::device_count(kind), 0u);
  state.enumerate_status = TENON_UNAVAILABLE;
  EXPECT_EQ(find_error("liar", TENON_UNAVAILABLE), "liar > enumerate > driver library is absent");
  state.fails_without_text = true;
  EXPECT_EQ(find_error("liar", TENON_UNAVAILABLE),
            "liar > enumerate > failed with code 14 and no text");
  state.enumerate_status = TENON_OK;
  state.flags = TENON_DEVICE_HOST_MEMORY | TENON_DEVICE_OPAQUE_MEMORY;
  state.device_count = 1;
  EXPECT_TRUE(
      contains(find_error("liar", TENON_INVALID_ARGUMENT), "HOST_MEMORY and OPAQUE_MEMORY"));
  state.flags = 0;
  state.open_returns_null = true;
  EXPECT_TRUE(
      contains(find_error("liar", TENON_INTERNAL), "liar:0 > open: returned OK and no handle"));
  state.open_returns_null = false;
  find("liar");
  EXPECT_EQ(remove_device_kind(kind, nullptr), TENON_OK);
}

TEST(DeviceTable, KeepsAKindWhileSomethingOfItIsAlive) {
  using F = Fake<Leased>;
  F::state().kind = "leased";
  F::state().flags = TENON_DEVICE_HOST_MEMORY;
  static tenon_device_api api = F::table();
  uint32_t kind;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(add_device_kind(&api, nullptr, &kind, nullptr), TENON_OK);
    Device& device = *find_device(TENON_DEVICE_ID(kind, 0));
    void* data[3];
    for (void*& block : data) ASSERT_EQ(allocate(device, 1000, nullptr, &block, nullptr), TENON_OK);
    deallocate(device, data[0], 1000, nullptr);
    tenon_err err;
    EXPECT_EQ(remove_device_kind(kind, &err), TENON_FAILED_PRECONDITION);
    EXPECT_TRUE(contains(err.text,
                         "'leased' is in use: leased:0 has 2 memory block(s) of together 1.95 KiB"))
        << err.text;
    for (void* block : {data[1], data[2]}) deallocate(device, block, 1000, nullptr);
    // Nothing is held now: what threads had cached goes back to the plugin before it closes.
    EXPECT_EQ(remove_device_kind(kind, nullptr), TENON_OK);
    EXPECT_EQ(F::state().live_bytes, 0u);
    EXPECT_EQ(F::state().wrong_frees, 0u);
  }
  EXPECT_EQ(F::state().opened, F::state().closed);
}

TEST(DeviceTable, MayComeBackWithOtherProperties) {
  using F = Fake<Changing>;
  F::state().kind = "changing";
  static tenon_device_api apis[2] = {F::table(false), F::table(true)};
  for (int round = 0; round < 4; ++round) {
    F::state().flags = round % 2 == 0 ? TENON_DEVICE_HOST_MEMORY : 0;
    uint32_t kind;
    ASSERT_EQ(add_device_kind(&apis[round % 2], nullptr, &kind, nullptr), TENON_OK);
    Device& device = *find_device(TENON_DEVICE_ID(kind, 0));
    void* data;
    ASSERT_EQ(allocate(device, 1000, nullptr, &data, nullptr), TENON_OK);
    EXPECT_EQ(device.cache_slot != 0, round % 2 == 0);
    deallocate(device, data, 1000, nullptr);
    EXPECT_EQ(remove_device_kind(kind, nullptr), TENON_OK);
    EXPECT_EQ(F::state().live_bytes, 0u);
  }
}

TEST(DeviceTable, LosesDriversButNotHostMemoryInAForkedChild) {
  Device& driver = Fake<Driver>::device("driver", 0);
  Device& memory = Fake<Memory>::device("memory", TENON_DEVICE_HOST_MEMORY);
  void* data;
  ASSERT_EQ(allocate(driver, 1000, nullptr, &data, nullptr), TENON_OK);
  pid_t child = fork();
  if (child == 0) {
    uint64_t frees = Fake<Driver>::state().frees;
    deallocate(driver, data, 1000, nullptr);
    Device* found = nullptr;
    tenon_err err;
    bool good = open_device(driver.id, &found, &err) == TENON_UNAVAILABLE &&
                contains(err.text, "driver:0 was opened before this process was forked") &&
                find_device(driver.id) == nullptr && find_device(memory.id) == &memory &&
                Fake<Driver>::state().frees == frees;
    _exit(good ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(find_device(driver.id), &driver);
  deallocate(driver, data, 1000, nullptr);
}

TEST(Streams, AreHonestlyUnsupportedWithoutTheGroup) {
  tenon_stream stream;
  tenon_event event;
  tenon_err err;
  EXPECT_EQ(slots::stream_create(TENON_DEVICE_META, 0, &stream, &err), TENON_UNSUPPORTED);
  EXPECT_TRUE(contains(err.text, "meta:0 has no streams and events"));
  EXPECT_EQ(slots::event_create(TENON_DEVICE_META, &event, nullptr), TENON_UNSUPPORTED);
  EXPECT_EQ(slots::stream_sync(TENON_DEVICE_META, nullptr, nullptr), TENON_OK);
  EXPECT_EQ(slots::device_sync(TENON_DEVICE_META, nullptr), TENON_OK);
  EXPECT_EQ(slots::stream_set_current(TENON_DEVICE_META, nullptr), nullptr);
}

TEST(Streams, RecordWaitAndQuery) {
  Device& device = Fake<Streams>::device("streams", 0, true);
  tenon_stream stream;
  tenon_event event;
  ASSERT_EQ(slots::stream_create(device.id, 0, &stream, nullptr), TENON_OK);
  ASSERT_EQ(slots::event_create(device.id, &event, nullptr), TENON_OK);
  stream->queued = 3;
  EXPECT_EQ(slots::event_record(device.id, event, stream, nullptr), TENON_OK);
  int32_t done = 5;
  EXPECT_EQ(slots::event_query(device.id, event, &done, nullptr), TENON_OK);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(slots::event_wait(device.id, event, nullptr, nullptr), TENON_OK);
  EXPECT_EQ(slots::event_sync(device.id, event, nullptr), TENON_OK);
  EXPECT_EQ(slots::event_query(device.id, event, &done, nullptr), TENON_OK);
  EXPECT_EQ(done, 1);

  tenon_err err;
  EXPECT_EQ(remove_device_kind(TENON_DEVICE_KIND(device.id), &err), TENON_FAILED_PRECONDITION);
  EXPECT_TRUE(contains(err.text, "streams:0 has 1 stream, 1 event")) << err.text;
  slots::event_destroy(device.id, event);
  slots::stream_destroy(device.id, stream);
  slots::stream_destroy(device.id, stream);  // unknown by now: ignored
  err = {};
  EXPECT_EQ(slots::event_sync(device.id, event, &err), TENON_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(err.text, "is not a live event of streams:0"));
}

TEST(Streams, AreCurrentPerThread) {
  Device& device = Fake<Current>::device("current", 0, true);
  EXPECT_EQ(current_stream(device), nullptr);
  tenon_stream stream;
  ASSERT_EQ(slots::stream_create(device.id, 0, &stream, nullptr), TENON_OK);
  EXPECT_EQ(slots::stream_set_current(device.id, stream), nullptr);
  EXPECT_EQ(current_stream(device), stream);
  std::thread([&] { EXPECT_EQ(current_stream(device), nullptr); }).join();
  EXPECT_EQ(slots::stream_set_current(device.id, stream), stream);
  std::thread([&] { slots::stream_destroy(device.id, stream); }).join();
  EXPECT_EQ(current_stream(device), nullptr);
  int not_a_stream;
  slots::stream_set_current(device.id, reinterpret_cast<tenon_stream>(&not_a_stream));
  EXPECT_EQ(current_stream(device), nullptr);
}

TEST(Random, AllDevicesDrawTheSameNumbers) {
  Device& meta = *find_device(TENON_DEVICE_META);
  Device& other = Fake<Current>::device("current", 0, true);
  slots::random_seed(42);
  uint64_t seed, offset, other_seed, other_offset;
  reserve_random(meta.id, 10, &seed, &offset);
  reserve_random(meta.id, 5, &seed, &offset);
  reserve_random(other.id, 10, &other_seed, &other_offset);
  EXPECT_EQ(seed, 42u);
  EXPECT_EQ(other_seed, 42u);
  EXPECT_EQ(offset, 10u);
  EXPECT_EQ(other_offset, 0u);
  slots::random_get(meta.id, &seed, &offset);
  EXPECT_EQ(offset, 15u);
  slots::random_set(meta.id, 7, 100);
  reserve_random(meta.id, 1, &seed, &offset);
  EXPECT_EQ(seed, 7u);
  EXPECT_EQ(offset, 100u);
  slots::random_seed(1);
  slots::random_get(meta.id, &seed, &offset);
  EXPECT_EQ(seed, 1u);
  EXPECT_EQ(offset, 0u);
}

// The last request, and the answer to copies from a peer.
struct PeerCopy {
  static inline tenon_copy_request requested;
  static inline tenon_device requested_of;
  static inline int copies;
  static inline tenon_status answer;

  static tenon_status copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    ++copies;
    requested = *request;
    requested_of = device;
    if (request->must_understand & TENON_COPY_PEER && answer != TENON_OK)
      return fail(err, answer, "no way between them");
    return Fake<Peers>::copy(device, request, err);
  }
};

TEST(DeviceTable, CopiesBetweenDevicesOfAPluginAreThePlugins) {
  using F = Fake<Peers>;
  F::state().kind = "peers";
  F::state().device_count = 2;
  static tenon_device_api api = F::table();
  api.copy = PeerCopy::copy;
  uint32_t kind = 0;
  ASSERT_EQ(add_device_kind(&api, nullptr, &kind, nullptr), TENON_OK);
  const int64_t shape[] = {1000};
  const auto made = [&](uint32_t index) {
    tenon_tensor* tensor = nullptr;
    EXPECT_EQ(slots::tensor_create(static_cast<tenon_device_id>(TENON_DEVICE_ID(kind, index)),
                                   TENON_DTYPE_U8, 1, shape, &tensor, nullptr),
              TENON_OK);
    return tensor;
  };
  tenon_tensor *from = made(0), *to = made(1);
  const auto copied = [&](tenon_status answer) {
    PeerCopy::answer = answer;
    PeerCopy::copies = 0;
    std::memset(from->data, 7, 1000);
    std::memset(to->data, 0, 1000);
    tenon_err err;
    const tenon_status status = slots::tensor_copy(to, from, &err);
    EXPECT_EQ(static_cast<unsigned char*>(to->data)[999], status == TENON_OK ? 7 : 0);
    return status;
  };
  EXPECT_EQ(copied(TENON_OK), TENON_OK);
  EXPECT_EQ(PeerCopy::copies, 1);
  EXPECT_EQ(PeerCopy::requested.direction, TENON_COPY_DEVICE_TO_DEVICE);
  EXPECT_EQ(PeerCopy::requested.src_device, find_device(from->device)->handle);
  EXPECT_EQ(PeerCopy::requested_of, find_device(to->device)->handle);
  EXPECT_EQ(copied(TENON_INTERNAL), TENON_INTERNAL);  // a failure is one
  EXPECT_EQ(PeerCopy::copies, 1);
  for (tenon_tensor* tensor : {from, to}) slots::tensor_release(tensor);
}

}  // namespace
}  // namespace tenon::test
