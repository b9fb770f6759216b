// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace opencl_test {

const tenon_plugin* plugin() {
  static const tenon_plugin* table = [] {
    tenon::attach(tenon_host_get(TENON_ABI_EPOCH));
    void* library = dlopen(TENON_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (!library) ADD_FAILURE() << dlerror();
    auto query = reinterpret_cast<tenon_plugin_query_fn>(dlsym(library, "tenon_plugin_query"));
    return query(TENON_ABI_EPOCH, TENON_ABI_EPOCH, host, nullptr);
  }();
  return table;
}

void DeviceTest::SetUp() {
  plugin();
  Error error;
  uint32_t count = 0;
  if (api()->enumerate(nullptr, 0, &count, error) != TENON_OK) GTEST_SKIP() << error.text();
  if (count == 0) GTEST_SKIP() << "no OpenCL device is usable";
  ASSERT_EQ(api()->open(0, &device_, error), TENON_OK) << error.text();
}

void DeviceTest::TearDown() {
  if (!device_) return;
  for (tenon_program program : programs_) compile()->program_destroy(device_, program);
  for (tenon_event event : events_) async()->event_destroy(device_, event);
  for (tenon_stream stream : streams_) async()->stream_destroy(device_, stream);
  for (auto [memory, bytes] : memory_) api()->free(device_, memory, bytes, nullptr);
  api()->close(device_);
}

void* DeviceTest::allocate(uint64_t bytes, uint64_t align) {
  tenon_alloc_request request = {sizeof request, TENON_ALLOC_DEVICE, 0, bytes, align, nullptr};
  void* memory = nullptr;
  EXPECT_OK(api()->alloc(device_, &request, &memory, err));
  memory_.emplace_back(memory, bytes);
  return memory;
}

tenon_stream DeviceTest::new_stream() {
  tenon_stream stream = nullptr;
  EXPECT_OK(async()->stream_create(device_, 0, &stream, err));
  streams_.push_back(stream);
  return stream;
}

tenon_event DeviceTest::new_event() {
  tenon_event event = nullptr;
  EXPECT_OK(async()->event_create(device_, 0, &event, err));
  events_.push_back(event);
  return event;
}

tenon_program DeviceTest::build(const std::string& source, const char* name) {
  tenon_program_request request = {sizeof request, 0, 0, name, source.data(), source.size()};
  tenon_program program = nullptr;
  Error error;
  if (compile()->program_create(device_, &request, &program, error) != TENON_OK)
    throw std::runtime_error(error.text());  // ends the test
  programs_.push_back(program);
  return program;
}

tenon_kernel DeviceTest::kernel(tenon_program program, const char* name) {
  tenon_kernel kernel = nullptr;
  Error error;
  if (compile()->program_kernel(device_, program, name, &kernel, error) != TENON_OK)
    throw std::runtime_error(error.text());
  return kernel;
}

void DeviceTest::write(void* to, const void* from, uint64_t bytes, tenon_stream stream) {
  tenon_copy_request request = {sizeof request, TENON_COPY_HOST_TO_DEVICE, 0, to, from, bytes, 0, 0,
                                stream};
  EXPECT_OK(api()->copy(device_, &request, err));
}

void DeviceTest::read(void* to, const void* from, uint64_t bytes, tenon_stream stream) {
  tenon_copy_request request = {sizeof request, TENON_COPY_DEVICE_TO_HOST, 0, to, from, bytes, 0, 0,
                                stream};
  EXPECT_OK(api()->copy(device_, &request, err));
}

void DeviceTest::move(void* to, const void* from, uint64_t bytes, tenon_stream stream) {
  tenon_copy_request request = {
      sizeof request, TENON_COPY_DEVICE_TO_DEVICE, 0, to, from, bytes, 0, 0, stream};
  EXPECT_OK(api()->copy(device_, &request, err));
}

void DeviceTest::set(void* to, uint64_t offset, uint64_t bytes, const void* pattern,
                     uint32_t pattern_bytes, tenon_stream stream) {
  EXPECT_OK(api()->fill(device_, to, offset, bytes, pattern, pattern_bytes, stream, err));
}

tenon_launch_request DeviceTest::request_for(tenon_kernel kernel,
                                             const std::vector<tenon_launch_arg>& args,
                                             uint32_t groups, uint32_t group_size,
                                             tenon_stream stream) {
  return {.struct_size = sizeof(tenon_launch_request),
          .nargs = static_cast<uint32_t>(args.size()),
          .must_understand = 0,
          .kernel = kernel,
          .args = args.data(),
          .groups = {groups, 1, 1},
          .group_size = {group_size, 1, 1},
          .stream = stream};
}

void DeviceTest::launch(tenon_kernel kernel, const std::vector<tenon_launch_arg>& args,
                        uint32_t groups, uint32_t group_size, tenon_stream stream) {
  tenon_launch_request request = request_for(kernel, args, groups, group_size, stream);
  EXPECT_OK(compile()->kernel_launch(device_, &request, err));
}

}  // namespace opencl_test
