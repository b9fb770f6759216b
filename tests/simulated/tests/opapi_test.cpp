// SPDX-License-Identifier: Apache-2.0
// What the simulated aclnn refuses of executors that run again, and what a stale address does.
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

struct aclTensor;
struct aclOpExecutor;

extern "C" {
int aclInit(const char*);
int aclrtSetDevice(int32_t);
int aclrtMalloc(void**, size_t, int);
int aclrtFree(void*);
int aclrtMemcpy(void*, size_t, const void*, size_t, int);
int aclrtCreateStream(void**);
int aclrtDestroyStream(void*);
int aclrtSynchronizeStream(void*);
int aclrtSetSysParamOpt(int, int64_t);
int aclmdlRICaptureBegin(void*, int);
int aclmdlRICaptureEnd(void*, void**);
int aclmdlRIDestroy(void*);
aclTensor* aclCreateTensor(const int64_t*, uint64_t, int, const int64_t*, int64_t, int,
                           const int64_t*, uint64_t, void*);
int aclDestroyTensor(const aclTensor*);
int aclnnExpGetWorkspaceSize(const aclTensor*, aclTensor*, uint64_t*, aclOpExecutor**);
int aclnnExp(void*, uint64_t, aclOpExecutor*, void*);
int aclSetAclOpExecutorRepeatable(aclOpExecutor*);
int aclSetTensorAddr(aclOpExecutor*, size_t, aclTensor*, void*);
int aclDestroyAclOpExecutor(aclOpExecutor*);
}

namespace {

constexpr int kInvalid = 161002;
constexpr size_t kBytes = 64;

class Executor : public ::testing::Test {
 protected:
  void SetUp() override {
    aclInit(nullptr);
    ASSERT_EQ(aclrtSetDevice(0), 0);
    ASSERT_EQ(aclrtCreateStream(&stream), 0);
    for (void** memory : {&in, &out, &other, &workspace})
      ASSERT_EQ(aclrtMalloc(memory, 4096, 0), 0);
    fill(in, 0);
    fill(other, -1);
    fill(out, -1);
    x = tensor(in);
    y = tensor(out);
    ASSERT_EQ(aclnnExpGetWorkspaceSize(x, y, &bytes, &executor), 0);
  }
  void TearDown() override {
    aclrtDestroyStream(stream);
    for (void* memory : {in, out, other, workspace}) aclrtFree(memory);
  }
  static aclTensor* tensor(void* memory) {
    const int64_t shape = kBytes / sizeof(float), step = 1;
    return aclCreateTensor(&shape, 1, 0, &step, 0, 2, &shape, 1, memory);
  }
  static void fill(void* memory, float value) {
    const std::vector<float> values(kBytes / sizeof(float), value);
    ASSERT_EQ(aclrtMemcpy(memory, kBytes, values.data(), kBytes, 1), 0);
  }
  static float first(void* memory) {
    float value = 0;
    EXPECT_EQ(aclrtMemcpy(&value, sizeof value, memory, sizeof value, 2), 0);
    return value;
  }
  int run() { return aclnnExp(workspace, bytes, executor, stream); }
  void repeat() { ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), 0); }

  void *stream = nullptr, *in = nullptr, *out = nullptr, *other = nullptr, *workspace = nullptr;
  aclTensor *x = nullptr, *y = nullptr;
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
};

TEST_F(Executor, RunsOnceUnlessItWasMadeRepeatable) {
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(run(), kInvalid);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), 561000);
}

TEST_F(Executor, RunsAgainWithOtherAddresses) {
  repeat();
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(aclSetTensorAddr(executor, 1, y, other), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(first(out), 1);
  EXPECT_EQ(first(other), 1);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(Executor, UsesAStaleAddressWhereNoneWasSet) {
  repeat();
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(first(other), -1);
  aclrtFree(in);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507015);
  in = nullptr;
  EXPECT_EQ(aclrtMalloc(&in, 4096, 0), 0);
}

TEST_F(Executor, IsNotEndedWhileItsWorkIsUnderWay) {
  repeat();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run(), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), kInvalid);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), kInvalid);
  EXPECT_EQ(run(), kInvalid);
}

TEST_F(Executor, IsMadeRepeatableDirectlyAfterItsPlan) {
  aclOpExecutor* later = nullptr;
  ASSERT_EQ(aclnnExpGetWorkspaceSize(x, y, &bytes, &later), 0);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), 561000);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(later), 0);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(nullptr), 561103);
}

TEST_F(Executor, RefusesAddressesThatDoNotFit) {
  EXPECT_EQ(aclSetTensorAddr(executor, 0, x, other), kInvalid);  // it is not repeatable
  repeat();
  EXPECT_EQ(aclSetTensorAddr(executor, 0, x, static_cast<char*>(in) + 4), kInvalid);
  EXPECT_EQ(aclSetTensorAddr(executor, 0, x, in), 0);
  EXPECT_EQ(aclSetTensorAddr(executor, 0, y, out), kInvalid);
  EXPECT_EQ(aclSetTensorAddr(executor, 0, nullptr, out), 561103);
}

TEST_F(Executor, RefusesNumbersOfAnotherOrder) {
  repeat();
  EXPECT_EQ(aclSetTensorAddr(executor, 1, x, in), 0);
  EXPECT_EQ(aclSetTensorAddr(executor, 0, y, out), 0);
  EXPECT_EQ(run(), kInvalid);
}

TEST_F(Executor, NeedsItsTensorsThreadAndMode) {
  repeat();
  std::thread([&] {
    aclrtSetDevice(0);
    EXPECT_EQ(run(), kInvalid);
  }).join();
  EXPECT_EQ(aclrtSetSysParamOpt(0, 1), 0);
  EXPECT_EQ(run(), kInvalid);
  EXPECT_EQ(aclrtSetSysParamOpt(0, 0), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(aclDestroyTensor(x), 0);
  EXPECT_EQ(run(), kInvalid);
}

TEST_F(Executor, IsNotRecorded) {
  repeat();
  void* model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream, 2), 0);
  EXPECT_EQ(run(), kInvalid);
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), 0);
  EXPECT_EQ(aclmdlRIDestroy(model), 0);
}

}  // namespace
