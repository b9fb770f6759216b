// SPDX-License-Identifier: Apache-2.0
// Plugins of other days, through the real loader:
//   kept_test <libtenon.so> <folder of today's plugins> <folder of kept plugins> <revision expected
//   of the host>
// The host is opened like any library, so that the same test runs with builds of it that differ.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <tenon/abi.h>

#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace {

std::string library, plugins, kept;
uint32_t revision;

class KeptPlugins : public testing::Test {
 protected:
  void SetUp() override {
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(handle) << dlerror();
    auto get = reinterpret_cast<decltype(&tenon_host_get)>(dlsym(handle, "tenon_host_get"));
    ASSERT_TRUE(get);
    host = get(TENON_ABI_EPOCH);
    ASSERT_TRUE(host);
    ASSERT_EQ(host->revision, revision);
    err = host->err_create();
    load(plugins + "/libtenon_standard_ops.so");
    load(plugins + "/libtenon_cpu.so");
  }
  void TearDown() override { host->err_destroy(err); }

  void ok(tenon_status status, const std::string& what) {
    ASSERT_EQ(status, TENON_OK) << what << ": " << host->err_text(err);
  }
  void load(const std::string& path) { ok(host->plugin_load(path.c_str(), err), "load " + path); }
  void unload(const char* name, const std::string& file) {
    ok(host->plugin_unload(name, err), std::string("unload ") + name);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find(file), line.npos) << line;
  }

  tenon_device_id device(const char* name) {
    tenon_device_id id = TENON_DEVICE_NONE;
    ok(host->device_find(name, &id, err), name);
    return id;
  }
  tenon_tensor* tensor(tenon_device_id id, int64_t count) {
    tenon_tensor* made = nullptr;
    ok(host->tensor_create(id, TENON_DTYPE_F32, 1, &count, &made, err), "tensor_create");
    return made;
  }
  // 0, 1, 2, ... on a device.
  tenon_tensor* numbers(tenon_device_id id, int64_t count) {
    tenon_tensor* on_host = tensor(device("cpu"), count);
    std::iota(static_cast<float*>(on_host->data), static_cast<float*>(on_host->data) + count, 0.0f);
    tenon_tensor* result = tensor(id, count);
    ok(host->tensor_copy(result, on_host, err), "copy to the device");
    host->tensor_release(on_host);
    return result;
  }
  tenon_tensor* call(const char* name, std::vector<tenon_tensor*> tensors) {
    const tenon_op* op = host->op_find(name);
    EXPECT_TRUE(op) << name;
    if (!op) return nullptr;
    std::vector<tenon_value> args;
    for (tenon_tensor* t : tensors) args.push_back({TENON_VALUE_TENSOR, 0, {.p = t}});
    tenon_value out = {};
    ok(host->op_call(op, args.data(), static_cast<uint32_t>(args.size()), &out, 1, err), name);
    return static_cast<tenon_tensor*>(out.v.p);
  }
  // Every element i is `factor * i`; releases the tensor.
  void expect_multiples(tenon_tensor* t, float factor) {
    ASSERT_TRUE(t);
    tenon_tensor* on_host = tensor(device("cpu"), t->numel);
    ok(host->tensor_copy(on_host, t, err), "copy to the host");
    for (int64_t i = 0; i < t->numel; ++i)
      ASSERT_EQ(static_cast<float*>(on_host->data)[i], factor * static_cast<float>(i));
    host->tensor_release(on_host);
    host->tensor_release(t);
  }
  void works(const char* name) {
    const tenon_device_id id = device(name);
    tenon_tensor* x = numbers(id, 1001);
    tenon_tensor* sum = call("tenon::add", {x, x});
    ASSERT_TRUE(sum);
    EXPECT_EQ(sum->device, id);
    expect_multiples(sum, 2);
    expect_multiples(call("tenon::subtract", {x, x}), 0);
    host->tensor_release(x);
    ok(host->device_sync(id, err), "sync");
  }

  const tenon_host* host = nullptr;
  tenon_err* err = nullptr;
};

TEST_F(KeptPlugins, DeviceInC) {
  load(kept + "/kept_device.so");
  works("keptc:0");
  tenon_device_info info = {.struct_size = sizeof info};
  ok(host->device_info(device("keptc:0"), &info, err), "device_info");
  EXPECT_STREQ(info.name, "Kept C device");
}

TEST_F(KeptPlugins, DeviceInRust) {
  load(kept + "/kept_rust.so");
  works("keptrust:0");
  tenon_device_id none;
  EXPECT_EQ(host->device_find("keptrust:1", &none, err), TENON_NOT_FOUND);
}

TEST_F(KeptPlugins, OperatorsInCpp) {
  load(kept + "/kept_operators.so");
  tenon_tensor* x = numbers(device("cpu"), 1001);
  expect_multiples(call("kept::twice", {x}), 2);
  host->tensor_release(x);
  struct Service {
    uint32_t struct_size;
    int32_t (*answer)();
  };
  const auto* service = static_cast<const Service*>(host->service_find("kept/1", 1));
  ASSERT_TRUE(service);
  EXPECT_EQ(service->answer(), 42);
}

TEST_F(KeptPlugins, AllTogetherAndOutAgain) {
  for (const char* name : {"kept_device", "kept_rust", "kept_operators"})
    load(kept + "/" + name + ".so");
  works("keptc:0");
  works("keptrust:0");
  tenon_tensor* x = numbers(device("keptc:0"), 7);
  expect_multiples(call("kept::twice", {x}), 2);
  host->tensor_release(x);
  unload("kept_operators", "kept_operators.so");
  unload("kept_rust", "kept_rust.so");
  unload("kept_device", "kept_device.so");
}

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  if (count != 5) {
    std::fprintf(stderr, "expected: kept_test <libtenon.so> <plugins> <kept plugins> <revision>\n");
    return 2;
  }
  library = arguments[1];
  plugins = arguments[2];
  kept = arguments[3];
  revision = static_cast<uint32_t>(std::atoi(arguments[4]));
  setenv("TENON_PLUGIN_TRUST", "any", 1);  // a checkout may lie anywhere
  return RUN_ALL_TESTS();
}
