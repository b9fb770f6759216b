// SPDX-License-Identifier: Apache-2.0
// Plugins without a file: tables that the program, or another plugin, hands over.
#include "faulty/parts.hpp"
#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/status.hpp"
#include "support.hpp"

const tenon_host* host = tenon_host_get(TENON_ABI_EPOCH);  // for parts.cpp

namespace tenon::test {
namespace {

namespace slots = core::slots;

Outcome attach(const tenon_plugin* table, const char* origin = "a test") {
  tenon_err err;
  tenon_status status = slots::plugin_attach(table, origin, &err);
  return {status, status == TENON_OK ? "OK" : err.text};
}

// Their addresses must outlive the test's functions.
Parts parts, second;

Parts& sound(Parts& into) {
  make_sound(into);
  return into;
}

TEST(Attach, BringsEverythingInAndUnloadTakesItOut) {
  ASSERT_TRUE(is_ok(attach(&sound(parts).plugin)));
  EXPECT_TRUE(is_ok(find_device("faulty:0")));
  EXPECT_NE(slots::op_find("faulty::twice"), nullptr);
  std::string json = describe();
  EXPECT_NE(json.find(R"("name":"faulty","version":"1.0.0","path":"a test","kind":"device")"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find(R"("devices":["faulty"])"), std::string::npos) << json;
  EXPECT_TRUE(is_ok(unload("faulty")));
  EXPECT_EQ(slots::op_find("faulty::twice"), nullptr);
  EXPECT_EQ(find_device("faulty").status, TENON_NOT_FOUND);
  EXPECT_EQ(describe().find("resident"), std::string::npos);
  EXPECT_TRUE(is_ok(attach(&parts.plugin))) << "and in again";
}

TEST(Attach, NeedsATableWithANameAndAVersion) {
  EXPECT_TRUE(is_refused(attach(nullptr), "BAD_TABLE", "a test: expected a table with a name"));
  EXPECT_TRUE(is_refused(attach(nullptr, nullptr), "BAD_TABLE", "(attached): expected a table"));
  sound(parts).plugin.name = nullptr;
  EXPECT_TRUE(is_refused(attach(&parts.plugin), "BAD_TABLE", "a name like [a-z]"));
  sound(parts).plugin.name = "../Faulty";
  EXPECT_TRUE(is_refused(attach(&parts.plugin), "BAD_TABLE", "a name like [a-z]"));
  sound(parts).plugin.version = nullptr;
  EXPECT_TRUE(is_refused(attach(&parts.plugin), "BAD_TABLE", "and a version"));
  sound(parts).plugin.struct_size = 32;
  EXPECT_TRUE(is_refused(attach(&parts.plugin), "BAD_TABLE", "write its size to struct_size"));
}

TEST(Attach, ChecksTheTableLikeALoadedOne) {
  struct Case {
    const char *fault, *reason, *text;
  };
  const Case kCases[] = {
      {"plugin_features", "BAD_TABLE", "feature bits"},
      {"plugin_size_odd", "BAD_TABLE", "multiple of 8"},
      {"device_kind_bad", "BAD_TABLE", "got 'Faulty:0'"},
      {"device_free_null", "BAD_TABLE", "`free` is missing"},
      {"async_partial", "BAD_TABLE", "lacks `stream_destroy`"},
      {"enumerate_no_driver", "NO_DEVICE", "libfaulty_driver.so.1 is not installed"},
      {"op_hash_wrong", "BAD_TABLE", "schema_hash: expected 0x"},
      {"kernel_boxed_null", "BAD_TABLE", "`boxed` is NULL"},
      {"start_fails", "START_FAILED", "faulty 1.0.0 (a test) did not start: "},
      {"start_throws", "START_FAILED", "start blew up"},
  };
  for (const Case& expected : kCases) {
    ASSERT_TRUE(make_faulty(sound(parts), expected.fault)) << expected.fault;
    EXPECT_TRUE(is_refused(attach(&parts.plugin), expected.reason, expected.text))
        << expected.fault;
    EXPECT_EQ(slots::op_find("faulty::twice"), nullptr);
    EXPECT_EQ(slots::service_find("faulty", 1), nullptr);
    EXPECT_EQ(find_device("faulty").status, TENON_NOT_FOUND);
  }
  EXPECT_TRUE(is_ok(attach(&sound(parts).plugin)));
}

TEST(Attach, OfATakenNameIsRefused) {
  ASSERT_TRUE(is_ok(load_with_fault("none")));
  EXPECT_TRUE(is_refused(attach(&sound(parts).plugin), "NAME_TAKEN", "libtenon_faulty.so)"));
  ASSERT_TRUE(is_ok(unload("faulty")));
  ASSERT_TRUE(is_ok(attach(&parts.plugin)));
  EXPECT_TRUE(
      is_refused(load_with_fault("none"), "NAME_TAKEN", "is taken by faulty 1.0.0 (a test)"));
  EXPECT_TRUE(is_refused(attach(&parts.plugin), "NAME_TAKEN", "(a test)"));
  Variable variable("TENON_PLUGINS_DISABLE", "second");
  sound(second).plugin.name = "second";
  EXPECT_TRUE(is_refused(attach(&second.plugin), "DISABLED", "second"));
}

TEST(Attach, OfATakenDeviceIsRefusedAndLeavesNothing) {
  ASSERT_TRUE(is_ok(load(plugin_path("null"))));
  ASSERT_TRUE(make_faulty(sound(parts), "device_kind_of_other"));
  EXPECT_TRUE(is_refused(attach(&parts.plugin), "NAME_TAKEN", "already provided by null 0.1.0"));
  EXPECT_EQ(slots::op_find("faulty::twice"), nullptr);
  EXPECT_TRUE(is_ok(find_device("null:0")));
}

TEST(Attach, WhileATensorLivesCannotBeUndone) {
  ASSERT_TRUE(is_ok(attach(&sound(parts).plugin)));
  tenon_device_id device;
  ASSERT_EQ(slots::device_find("faulty", &device, nullptr), TENON_OK);
  int64_t shape = 4;
  tenon_tensor* tensor = nullptr;
  ASSERT_EQ(slots::tensor_create(device, TENON_DTYPE_F32, 1, &shape, &tensor, nullptr), TENON_OK);
  EXPECT_TRUE(is_refused(unload("faulty"), "IN_USE", "1 memory block"));
  slots::tensor_release(tensor);
  EXPECT_TRUE(is_ok(unload("faulty")));
}

TEST(Attach, FromInsideStartWorks) {
  ASSERT_TRUE(is_ok(load_with_fault("start_attaches")));
  EXPECT_TRUE(is_ok(find_device("child:0")));
  EXPECT_TRUE(is_ok(find_device("faulty:0")));
  // The child's code lies in its parent's library.
  EXPECT_TRUE(is_refused(unload("faulty"), "IN_USE", "it has attached 'faulty_child'"));
  EXPECT_TRUE(is_ok(find_device("faulty:0")));
  EXPECT_TRUE(is_ok(unload("faulty_child")));
  EXPECT_TRUE(is_ok(unload("faulty")));
  EXPECT_EQ(describe().find("resident"), std::string::npos);
}

TEST(Attach, FromInsideAStartThatFailsKeepsTheLibraryMapped) {
  EXPECT_TRUE(is_refused(load_with_fault("start_attaches_and_fails"), "START_FAILED",
                         "it stays mapped: plugin faulty is in use: it has attached"));
  EXPECT_TRUE(is_ok(find_device("child:0")));
}

TEST(Attach, OfItselfFromInsideStartIsRefused) {
  sound(parts).plugin.start = [](const tenon_host*, tenon_err* err) {
    return slots::plugin_attach(&parts.plugin, "again", err);
  };
  EXPECT_TRUE(is_refused(attach(&parts.plugin), "START_FAILED", "[NAME_TAKEN]"));
  EXPECT_EQ(find_device("faulty").status, TENON_NOT_FOUND);
}

}  // namespace
}  // namespace tenon::test
