// SPDX-License-Identifier: Apache-2.0
// What the plugin does when the driver fails.
#include <dlfcn.h>

#include "support.hpp"

namespace opencl_test {
namespace {

int& countdown(const char* name) {
  static void* driver = dlopen(TENON_TEST_DRIVER, RTLD_NOW | RTLD_LOCAL);
  return *static_cast<int*>(dlsym(driver, name));
}

class OpenclFaults : public DeviceTest {
 protected:
  void SetUp() override {
    setenv("TENON_OPENCL_LIBRARY", TENON_TEST_DRIVER, 1);
    DeviceTest::SetUp();
  }
};

constexpr char kSource[] = R"(
TK_KERNEL void write_17(TK_BUFFER(tk_i32, out)) {
  TK_BIND(tk_i32, out);
  out[0] = 17;
})";

TEST_F(OpenclFaults, EveryWayToRunOutIsOutOfMemory) {
  tenon_alloc_request request = {sizeof request, TENON_ALLOC_DEVICE, 0, 1 << 20, 512, nullptr};
  void* memory = nullptr;
  countdown("failing_buffers") = 1;
  EXPECT_FAILS(TENON_OUT_OF_MEMORY,
               "opencl: alloc 1048576 B: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)",
               api()->alloc(device_, &request, &memory, err));
  countdown("failing_migrations") = 1;
  EXPECT_FAILS(TENON_OUT_OF_MEMORY,
               "opencl: alloc 1048576 B: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)",
               api()->alloc(device_, &request, &memory, err));
  EXPECT_EQ(memory, nullptr);
  EXPECT_NE(allocate(1 << 20), nullptr);
}

TEST_F(OpenclFaults, AnOverlappingCopySaysThatItsTemporaryIsMissing) {
  char* memory = static_cast<char*>(allocate(1000));
  tenon_copy_request request = {
      sizeof request, TENON_COPY_DEVICE_TO_DEVICE, 0, memory + 1, memory, 500, 0, 0, nullptr};
  countdown("failing_buffers") = 1;
  EXPECT_FAILS(TENON_INTERNAL, "opencl: copy 500 B on the device: CL_OUT_OF_RESOURCES (-5)",
               api()->copy(device_, &request, err));
}

TEST_F(OpenclFaults, FailedWorkSurfacesWhereItIsWaitedFor) {
  tenon_kernel work = kernel(build(kSource), "write_17");
  void* memory = device_copy(std::vector<int32_t>{0});
  void* other = device_copy(std::vector<int32_t>{3});
  tenon_stream broken = new_stream(), good = new_stream();
  tenon_event event = new_event();
  countdown("failing_launches") = 1;
  launch(work, {buffer(memory)}, 1, 1, broken);  // queued well
  EXPECT_OK(async()->event_record(device_, event, broken, err));
  // Drivers differ in the number that a failed command ends with.
  auto expect_failure = [](tenon_status status, const Error& error, const char* where) {
    EXPECT_NE(status, TENON_OK);
    std::string expected =
        std::string("opencl: ") + where + ": work queued earlier has failed: CL_";
    EXPECT_EQ(error.text().substr(0, expected.size()), expected);
  };
  Error error[4];
  int32_t done = 0;
  expect_failure(async()->event_sync(device_, event, error[0]), error[0], "event_sync");
  expect_failure(async()->event_query(device_, event, &done, error[1]), error[1], "event_query");
  expect_failure(api()->sync(device_, broken, error[2]), error[2], "sync");
  expect_failure(api()->sync(device_, nullptr, error[3]), error[3], "sync");
  // Others do not notice.
  EXPECT_OK(api()->sync(device_, good, err));
  launch(work, {buffer(other)}, 1, 1, good);
  EXPECT_EQ(values<int32_t>(other, 1, good)[0], 17);
}

TEST_F(OpenclFaults, BinariesThatTheDriverRefusesAreBuiltAgain) {
  build(kSource);  // in the cache by now
  countdown("failing_binaries") = 1;
  void* memory = device_copy(std::vector<int32_t>{0});
  launch(kernel(build(kSource), "write_17"), {buffer(memory)}, 1, 1);
  EXPECT_EQ(values<int32_t>(memory, 1)[0], 17);
  EXPECT_EQ(countdown("failing_binaries"), 0);  // it was asked
}

}  // namespace
}  // namespace opencl_test
