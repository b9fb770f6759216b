// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include "support.hpp"

namespace {

using namespace gpu;

class Failures : public Simulated {
 protected:
  FunctionHandle poke() {
    return kernel(load("extern \"C\" __global__ void poke(int* x) { x[INDEX] = 1; }"), "poke");
  }
};

TEST_F(Failures, TheNthCallFails) {
  simulated_fail(name::device_alloc, 2, 2, 1);
  void *first = nullptr, *second = nullptr;
  EXPECT_EQ(device_alloc(&first, 16), 0);
  EXPECT_EQ(device_alloc(&second, 16), 2);
  EXPECT_EQ(device_alloc(&second, 16), 0);
}

TEST_F(Failures, CallsAreCounted) {
  const uint64_t before = simulated_calls(name::stream_query), all = simulated_calls(nullptr);
  stream_query(nullptr);
  EXPECT_EQ(simulated_calls(name::stream_query), before + 1);
  EXPECT_EQ(simulated_calls(nullptr), all + 1);
}

TEST_F(Failures, AnIllegalAccessIsStickyAndOtherDevicesAreNot) {
  FunctionHandle kernel = poke();
  for (int* bad : {static_cast<int*>(nullptr), reinterpret_cast<int*>(0x1234567000)}) {
    ASSERT_EQ(gpu::run(kernel, 1, 1, nullptr, bad), 0);  // found when it runs
    EXPECT_EQ(synchronize(), 700);
    void* memory = nullptr;
    EXPECT_EQ(device_alloc(&memory, 16), 700);
    EXPECT_EQ(gpu::run(kernel, 1, 1, nullptr, bad), 700);
    use_device(1);
    int* other = upload(std::vector<int>{5});
    EXPECT_EQ(download(other, 1)[0], 5);
    reset_device(0);
    use_device(0);
    kernel = poke();
  }
  int* good = upload(std::vector<int>{0});
  ASSERT_EQ(gpu::run(kernel, 1, 1, nullptr, good), 0);
  EXPECT_EQ(download(good, 1)[0], 1);
}

TEST_F(Failures, FreedMemoryAndMemoryOfTheHostOrOfAnotherDeviceIsIllegal) {
  int on_host = 0;
  int* freed = alloc<int>(16);
  ASSERT_EQ(device_free(freed), 0);
  use_device(1);
  int* elsewhere = alloc<int>(16);
  use_device(0);
  for (int* bad : {&on_host, freed, elsewhere}) {
    ASSERT_EQ(gpu::run(poke(), 1, 1, nullptr, bad), 0);
    EXPECT_EQ(synchronize(), 700);
    reset_device(0);
    use_device(0);
  }
}

TEST_F(Failures, KernelsCanBeMadeToFail) {
  FunctionHandle kernel = poke();
  int* good = upload(std::vector<int>{0, 0});
  simulated_fail("kernel", 2, 719, 1);
  ASSERT_EQ(gpu::run(kernel, 1, 1, nullptr, good), 0);
  EXPECT_EQ(synchronize(), 0);
  ASSERT_EQ(gpu::run(kernel, 1, 1, nullptr, good), 0);
  EXPECT_EQ(synchronize(), 719);
  reset_device(0);
}

TEST_F(Failures, AssertionsAndEndlessRecursionEndTheLaunch) {
  const char* source = R"(
    __device__ __noinline__ int deep(int n) {
      volatile char room[1000];
      room[0] = n;
      return n ? deep(n - 1) + room[0] : 0;
    }
    extern "C" __global__ void claim(int x) { assert(x == 1); }
    extern "C" __global__ void recurse(int* out) { *out = deep(1000000); })";
  ModuleHandle module = load(source);
  ASSERT_EQ(gpu::run(kernel(module, "claim"), 1, 1, nullptr, 1), 0);
  EXPECT_EQ(synchronize(), 0);
  ASSERT_EQ(gpu::run(kernel(module, "claim"), 1, 1, nullptr, 2), 0);
  EXPECT_EQ(synchronize(), 710);
  reset_device(0);
  use_device(0);
  int* out = alloc<int>(1);
  ASSERT_EQ(gpu::run(kernel(load(source), "recurse"), 1, 1, nullptr, out), 0);
  EXPECT_NE(synchronize(), 0);
  reset_device(0);
}

TEST_F(Failures, AForkedChildHasNoDriver) {
  const pid_t child = fork();
  if (child == 0) _exit(stream_query(nullptr));
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST_F(Failures, MemoryIsSharedWithAnotherProcess) {
  int* memory = upload(std::vector<int>{1, 2, 3});
  IpcHandle handle;
  ASSERT_EQ(ipc_export(&handle, memory), 0);
  void* opened = nullptr;
  EXPECT_EQ(ipc_open(&opened, handle, 1), 201);  // in the same process
  // The other process: this program again, which the environment tells what to do.
  std::string text;
  for (unsigned char byte : handle.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  const pid_t child = fork();
  if (child == 0) {
    setenv("SIMULATED_TEST_HANDLE", text.c_str(), 1);
    execl("/proc/self/exe", "test", "--gtest_filter=OtherProcess.*",
          "--gtest_also_run_disabled_tests", static_cast<char*>(nullptr));
    _exit(1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(download(memory, 3), (std::vector<int>{2, 3, 4}));
}

TEST(OtherProcess, DISABLED_AddsOneToSharedMemory) {
  const char* text = std::getenv("SIMULATED_TEST_HANDLE");
  ASSERT_NE(text, nullptr);
  IpcHandle handle;
  for (size_t i = 0; i < sizeof handle.bytes; ++i)
    handle.bytes[i] = static_cast<char>(std::stoi(std::string(text + 2 * i, 2), nullptr, 16));
  use_device(0);
  void* opened = nullptr;
  ASSERT_EQ(ipc_open(&opened, handle, 1), 0);
  EXPECT_EQ(download(static_cast<int*>(opened), 3), (std::vector<int>{1, 2, 3}));
  FunctionHandle add =
      kernel(load("extern \"C\" __global__ void add(int* x) { x[INDEX] += 1; }"), "add");
  ASSERT_EQ(gpu::run(add, 1, 3, nullptr, opened), 0);
  ASSERT_EQ(synchronize(), 0);
  EXPECT_EQ(ipc_close(opened), 0);
}

}  // namespace
