// SPDX-License-Identifier: Apache-2.0
// What keeps a plugin loaded, told by the one who asked to unload it.
#include <gtest/gtest.h>

#include "kernel_core/runtime/tensor.hpp"
#include "tests/core/fake_device.hpp"
#include "tests/core/fake_plugins.hpp"

namespace tenon::test {
namespace {

struct Restless {};
struct Busy {};

int starts, stops;
int32_t extension_slot;

tenon_status count_start(const tenon_host* host, tenon_err*) {
  ++starts;
  extension_slot = host->ext_register("unload_test", nullptr);
  return TENON_OK;
}
tenon_status count_stop(tenon_err*) {
  ++stops;
  return TENON_OK;
}

tenon_plugin plugin_table(const char* name, const tenon_device_api* device, bool with_start) {
  tenon_plugin table{};
  table.struct_size = sizeof table;
  table.revision = TENON_ABI_REVISION;
  table.name = name;
  table.version = "1.0";
  table.vendor = "tests";
  table.device = device;
  table.op_size = sizeof(tenon_op_def);
  table.kernel_size = sizeof(tenon_kernel_def);
  table.start = with_start ? count_start : nullptr;
  table.stop = count_stop;
  return table;
}

std::string unload_error(const char* name) {
  tenon_err err;
  EXPECT_NE(slots::plugin_unload(name, &err), TENON_OK);
  return err.text;
}

std::string attempts() {
  std::string json;
  slots::plugin_describe(
      [](void* user, const char* text, uint64_t bytes) {
        static_cast<std::string*>(user)->append(text, bytes);
      },
      &json);
  return json;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(Unload, WaitsForAPluginThatDoesNotComeToRest) {
  using F = Fake<Restless>;
  F::state().kind = "restless";
  static tenon_device_api device = F::table(true, true, true);
  static tenon_plugin table = plugin_table("restless", &device, false);
  ASSERT_EQ(slots::plugin_attach(&table, "a test", nullptr), TENON_OK);
  tenon_device_id id;
  ASSERT_EQ(slots::device_find("restless:0", &id, nullptr), TENON_OK);

  F::state().quiesce_status = TENON_DEADLINE_EXCEEDED;
  EXPECT_TRUE(contains(unload_error("restless"),
                       "plugin restless did not stop: restless > quiesce > its threads and "
                       "callbacks did not come to rest within 5 s"));
  EXPECT_TRUE(contains(attempts(), "\"STOP_FAILED\""));
  int64_t shape = 4;
  tenon_tensor* tensor = nullptr;
  ASSERT_EQ(slots::tensor_create(id, TENON_DTYPE_F32, 1, &shape, &tensor, nullptr), TENON_OK)
      << "the device must be as usable as before";
  slots::tensor_release(tensor);
  F::state().quiesce_status = TENON_OK;
  EXPECT_EQ(slots::plugin_unload("restless", nullptr), TENON_OK);
  EXPECT_TRUE(F::state().live.empty());
}

TEST(Unload, ListsEverythingThatIsAlive) {
  using F = Fake<Busy>;
  F::state().kind = "busy";
  F::state().device_count = 2;
  static tenon_device_api device = F::table(true, true);
  static tenon_plugin table = plugin_table("busy", &device, false);
  ASSERT_EQ(slots::plugin_attach(&table, "a test", nullptr), TENON_OK);
  tenon_device_id id, second;
  ASSERT_EQ(slots::device_find("busy:0", &id, nullptr), TENON_OK);
  ASSERT_EQ(slots::device_find("busy:1", &second, nullptr), TENON_OK);
  int64_t shape = 256;
  tenon_tensor* tensor = nullptr;
  tenon_stream stream;
  tenon_event event;
  const void* group;
  tenon_device handle;
  uint64_t hold;
  ASSERT_EQ(slots::tensor_create(id, TENON_DTYPE_F32, 1, &shape, &tensor, nullptr), TENON_OK);
  ASSERT_EQ(slots::stream_create(id, 0, &stream, nullptr), TENON_OK);
  ASSERT_EQ(slots::event_create(second, &event, nullptr), TENON_OK);
  ASSERT_EQ(slots::memory_hold_begin(id, stream, &hold, nullptr), TENON_OK);
  ASSERT_EQ(slots::device_group_borrow(second, TENON_GROUP_POOL, &group, &handle, nullptr),
            TENON_OK);
  std::string text = unload_error("busy");
  EXPECT_TRUE(contains(text,
                       "busy:0 has 1 memory block(s) of together 1.00 KiB, 1 hold(s) of memory for "
                       "recorded work, 1 stream; busy:1 has 1 event, 1 user of its `pool` group"))
      << text;
  EXPECT_TRUE(contains(attempts(), "\"IN_USE\""));
  slots::tensor_release(tensor);
  slots::memory_hold_release(id, hold);
  slots::stream_destroy(id, stream);
  slots::event_destroy(second, event);
  slots::device_group_return(second, TENON_GROUP_POOL);
  EXPECT_EQ(slots::plugin_unload("busy", nullptr), TENON_OK);
}

TEST(Unload, IsRefusedOnceTensorsHaveUsedAnExtensionSlot) {
  fake::install();
  static tenon_plugin table = plugin_table("extension", nullptr, true);
  ASSERT_EQ(slots::plugin_attach(&table, "a test", nullptr), TENON_OK);
  ASSERT_EQ(starts, 1);
  EXPECT_EQ(slots::plugin_unload("extension", nullptr), TENON_OK) << "no tensor has used it yet";
  ASSERT_EQ(slots::plugin_attach(&table, "a test", nullptr), TENON_OK);
  TensorRef tensor = fake::tensor({2}, {1, 2});
  slots::ext_set(tensor.get(), extension_slot, &starts);
  int stops_before = stops;
  EXPECT_TRUE(contains(unload_error("extension"),
                       "plugin extension is in use: tensors have used extension slot "
                       "'unload_test'"));
  EXPECT_EQ(stops, stops_before) << "a plugin that stays must not be stopped";
}

}  // namespace
}  // namespace tenon::test
