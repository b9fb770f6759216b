// SPDX-License-Identifier: Apache-2.0
// Several threads of one program, which Python cannot show: it holds a lock of its own during
// calls.
#include <gtest/gtest.h>
#include <signal.h>
#include <tenon/services/isolated.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <tenon/tensor.hpp>
#include <thread>
#include <vector>

namespace tenon {
namespace {

struct Error {
  Error() : handle(host->err_create()) {}
  ~Error() { host->err_destroy(handle); }
  std::string text() const { return host->err_text(handle); }
  tenon_err* handle;
};

void append(void* user, const char* text, uint64_t bytes) {
  static_cast<std::string*>(user)->append(text, bytes);
}

void load_brittle() {
  static const bool prepared = attach(tenon_host_get(TENON_ABI_EPOCH)) && [] {
    setenv("TENON_PLUGIN_TRUST", "any", 1);
    return host->plugin_load_default(Error().handle) == TENON_OK;
  }();
  ASSERT_TRUE(prepared);
  auto* isolated = static_cast<const tenon_isolated_api*>(
      host->service_find(TENON_ISOLATED_SERVICE, TENON_ISOLATED_VERSION));
  ASSERT_TRUE(isolated);
  Error err;
  const tenon_isolated_request request = {.struct_size = sizeof request,
                                          .path = TENON_TEST_BRITTLE};
  ASSERT_EQ(isolated->load(&request, err.handle), TENON_OK) << err.text();
}

void unload_brittle() {
  Error err;
  ASSERT_EQ(host->plugin_unload("brittle", err.handle), TENON_OK) << err.text();
}

pid_t process_id() {
  std::string json;
  host->plugin_describe(append, &json);
  const std::string before = "libtenon_brittle.so, isolated process ";
  const size_t at = json.find(before);  // loaded plugins come before attempts
  return at == json.npos ? 0 : atoi(json.c_str() + at + before.size());
}

Tensor order(float number) {
  Error err;
  tenon_device_id device, host_device = host->device_host();
  tenon_tensor *here = nullptr, *there = nullptr;
  const int64_t shape[] = {2};
  EXPECT_EQ(host->device_find("brittle", &device, err.handle), TENON_OK) << err.text();
  EXPECT_EQ(host->tensor_create(host_device, TENON_DTYPE_F32, 1, shape, &here, err.handle),
            TENON_OK);
  static_cast<float*>(here->data)[0] = static_cast<float*>(here->data)[1] = number;
  EXPECT_EQ(host->tensor_create(device, TENON_DTYPE_F32, 1, shape, &there, err.handle), TENON_OK);
  EXPECT_EQ(host->tensor_copy(there, here, err.handle), TENON_OK) << err.text();
  host->tensor_release(here);
  return Tensor::adopt(there);
}

// Empty, or why it failed.
std::string negate(const Tensor& x) {
  Error err;
  tenon_value argument = boxed(x.get()), result = {};
  if (host->op_call(host->op_find("negative"), &argument, 1, &result, 1, err.handle) != TENON_OK)
    return err.text();
  host->tensor_release(static_cast<tenon_tensor*>(result.v.p));
  return {};
}

constexpr float kHang = 1002, kSlow = 1006;

TEST(IsolatedProgram, OneSlowCallHoldsNoOtherUp) {
  load_brittle();
  {
    Tensor slow = order(kSlow), quick = order(2);
    std::atomic<bool> is_done{false};
    std::thread other([&] {
      EXPECT_EQ(negate(slow), "");
      is_done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(negate(quick), "");
    EXPECT_FALSE(is_done);
    other.join();
  }
  unload_brittle();
}

TEST(IsolatedProgram, AllThreadsLearnOfTheEnd) {
  load_brittle();
  {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 6; ++i) tensors.push_back(order(kHang));  // more than there are lanes
    std::vector<std::string> errors(tensors.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < tensors.size(); ++i)
      threads.emplace_back([&, i] { errors[i] = negate(tensors[i]); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_GT(process_id(), 0);
    kill(process_id(), SIGKILL);
    for (std::thread& thread : threads) thread.join();
    for (const std::string& error : errors)
      EXPECT_NE(error.find("died: signal 9 (Killed)"), error.npos) << error;
  }
  unload_brittle();
}

TEST(IsolatedProgram, ManyThreadsShareFewLanes) {
  load_brittle();
  {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([i] {
        Tensor x = order(static_cast<float>(i));
        for (int round = 0; round < 500; ++round) ASSERT_EQ(negate(x), "");
      });
    for (std::thread& thread : threads) thread.join();
  }
  unload_brittle();
}

}  // namespace
}  // namespace tenon
