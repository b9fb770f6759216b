// SPDX-License-Identifier: Apache-2.0
// Loading twice, unloading, leases, threads.
#include <fstream>
#include <thread>

#include "kernel_core/abi/slots.hpp"
#include "support.hpp"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
namespace slots = core::slots;

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(library) != std::string::npos) return true;
  return false;
}

tenon_tensor* tensor_on(const std::string& device_name) {
  tenon_device_id device;
  EXPECT_EQ(slots::device_find(device_name.c_str(), &device, nullptr), TENON_OK);
  int64_t shape = 16;
  tenon_tensor* tensor = nullptr;
  EXPECT_EQ(slots::tensor_create(device, TENON_DTYPE_F32, 1, &shape, &tensor, nullptr), TENON_OK);
  return tensor;
}

TEST(Load, OfALoadedFileChangesNothing) {
  Scratch scratch;
  fs::create_symlink(plugin_path("null"), scratch / "other_name.so");
  EXPECT_TRUE(is_ok(load(plugin_path("null"))));
  EXPECT_TRUE(is_ok(load(plugin_path("null"))));
  EXPECT_TRUE(is_ok(load(scratch / "other_name.so")));
}

TEST(Load, OfAnotherFileWithTheSameNameIsRefused) {
  Scratch scratch;
  ASSERT_TRUE(is_ok(load(plugin_path("null"))));
  std::string copy = scratch.copy("null", "copy.so");
  EXPECT_TRUE(is_refused(load(copy), "NAME_TAKEN",
                         "plugin name 'null' of version 0.1.0 (" + copy +
                             ") is taken by null 0.1.0 (" + plugin_path("null").string() + ")"));
}

TEST(Load, OfADisabledPluginIsRefused) {
  Variable variable("TENON_PLUGINS_DISABLE", "acme,null");
  EXPECT_TRUE(is_refused(load(plugin_path("null")), "DISABLED", "null"));
}

TEST(Load, FromManyThreadsHappensOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < 20; ++k) {
        EXPECT_TRUE(is_ok(load(plugin_path("null"))));
        EXPECT_TRUE(is_ok(find_device("null:0")));
        EXPECT_FALSE(describe().empty());
        slots::service_find("faulty", 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Unload, OfAnUnknownPluginIsRefused) {
  EXPECT_TRUE(is_refused(unload("acme"), "NOT_FOUND", "'acme'"));
}

TEST(Unload, TakesEverythingOut) {
  ASSERT_TRUE(is_ok(load_with_fault("none")));
  ASSERT_NE(slots::op_find("faulty::twice"), nullptr);
  ASSERT_TRUE(is_mapped("libtenon_faulty"));
  EXPECT_TRUE(is_ok(unload("faulty")));
  EXPECT_EQ(slots::op_find("faulty::twice"), nullptr);
  EXPECT_EQ(slots::service_find("faulty", 1), nullptr);
  EXPECT_EQ(find_device("faulty").status, TENON_NOT_FOUND);
  EXPECT_FALSE(is_mapped("libtenon_faulty"));
}

TEST(Unload, WhileATensorLivesIsRefusedAndChangesNothing) {
  ASSERT_TRUE(is_ok(load_with_fault("none")));
  tenon_tensor* tensor = tensor_on("faulty");
  EXPECT_TRUE(is_refused(unload("faulty"), "IN_USE", "faulty:0 has 1 memory block"));
  EXPECT_NE(slots::op_find("faulty::twice"), nullptr);
  slots::tensor_release(tensor);
  EXPECT_TRUE(is_ok(unload("faulty")));
}

TEST(Unload, WhileAServiceIsInUseIsRefused) {
  ASSERT_TRUE(is_ok(load_with_fault("none")));
  ASSERT_NE(slots::service_find("faulty", 1), nullptr);
  EXPECT_TRUE(is_refused(unload("faulty"), "IN_USE", "service 'faulty' is in use"));
}

TEST(Unload, OfALayerIsRefused) {
  ASSERT_TRUE(is_ok(load_with_fault("start_with_layer")));
  EXPECT_TRUE(is_refused(unload("faulty"), "IN_USE", "layer 'faulty_layer' is registered"));
}

TEST(Unload, NeedsAStopFunctionThatSucceeds) {
  ASSERT_TRUE(is_ok(load_with_fault("stop_fails")));
  EXPECT_TRUE(is_refused(unload("faulty"), "STOP_FAILED", "a thread is still running"));
  EXPECT_TRUE(is_ok(find_device("faulty")));
}

TEST(Load, OfThePluginThatIsBeingLoadedIsRefused) {
  Variable self("TENON_TEST_SELF", plugin_path("faulty"));
  EXPECT_TRUE(is_refused(load_with_fault("start_loads_itself"), "START_FAILED", "asks for itself"));
  EXPECT_TRUE(is_refused(load_with_fault("query_loads_itself"), "QUERY_FAILED", "asks for itself"));
  EXPECT_TRUE(is_ok(load_with_fault("none")));
}

TEST(Unload, OfThePluginThatIsBeingUnloadedIsRefused) {
  ASSERT_TRUE(is_ok(load_with_fault("stop_unloads_itself")));
  EXPECT_TRUE(is_refused(unload("faulty"), "STOP_FAILED", "is being unloaded: one at a time"));
  EXPECT_TRUE(is_ok(find_device("faulty")));
}

TEST(Unload, LeavesTheFileFreeToChange) {
  Scratch scratch;
  ASSERT_TRUE(is_ok(load(plugin_path("null"))));
  ASSERT_TRUE(is_ok(unload("null")));
  EXPECT_TRUE(is_ok(load(scratch.copy("null", "rebuilt.so"))));
}

TEST(Unload, OfALibraryThatTheSystemKeepsIsReported) {
  Scratch scratch;
  ASSERT_TRUE(is_ok(load(plugin_path("rival"))));
  ASSERT_TRUE(is_ok(unload("rival")));
  ASSERT_TRUE(is_mapped("libtenon_rival"));
  EXPECT_NE(describe().find(R"({"state":"resident","name":"rival","version":"","path":)"),
            std::string::npos);
  EXPECT_TRUE(
      is_refused(load(scratch.copy("rival", "rebuilt.so")), "NAME_TAKEN", "restart the process"));
  EXPECT_TRUE(is_ok(load(plugin_path("rival"))));
}

TEST(Service, IsFoundByNameAndLeastVersion) {
  int table = 0;
  ASSERT_EQ(slots::service_register("s", 3, &table, nullptr), TENON_OK);
  EXPECT_EQ(slots::service_find("s", 0), &table);
  EXPECT_EQ(slots::service_find("s", 3), &table);
  EXPECT_EQ(slots::service_find("s", 4), nullptr);
  EXPECT_EQ(slots::service_find("t", 0), nullptr);
  EXPECT_EQ(slots::service_find(nullptr, 0), nullptr);
}

TEST(Service, IsOfferedOnce) {
  int table = 0;
  ASSERT_EQ(slots::service_register("faulty", 1, &table, nullptr), TENON_OK);
  Outcome outcome = load_with_fault("none");
  EXPECT_TRUE(is_refused(outcome, "START_FAILED", "is already offered by the program"));
  EXPECT_NE(outcome.text.find("libtenon_faulty.so"), std::string::npos) << outcome.text;
  EXPECT_EQ(slots::service_find("faulty", 1), &table);
}

TEST(Service, NeedsNameVersionAndTable) {
  int table = 0;
  EXPECT_EQ(slots::service_register(nullptr, 1, &table, nullptr), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(slots::service_register("", 1, &table, nullptr), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(slots::service_register("s", 0, &table, nullptr), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(slots::service_register("s", 1, nullptr, nullptr), TENON_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tenon::test
