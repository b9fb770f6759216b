// SPDX-License-Identifier: Apache-2.0
// What the simulated HCCL refuses, and what becomes of work that is dropped. Needs SIMULATED_ASCEND_DEVICES=4.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "../failures.hpp"

struct RootInfo {
  char bytes[4108];
};
struct Item {
  int kind;
  void* memory;
  uint64_t count;
  int type;
  uint32_t peer;
};

extern "C" {
int aclInit(const char*);
int aclrtSetDevice(int32_t);
int aclrtMalloc(void**, size_t, int);
int aclrtFree(void*);
int aclrtMemcpy(void*, size_t, const void*, size_t, int);
int aclrtCreateStream(void**);
int aclrtDestroyStream(void*);
int aclrtSynchronizeStream(void*);
int aclrtStreamAbort(void*);
int aclrtStreamQuery(void*, int*);
int aclrtCreateEventExWithFlag(void**, uint32_t);
int aclrtRecordEvent(void*, void*);
int aclrtQueryEventStatus(void*, int*);
int aclrtSynchronizeEvent(void*);
int aclrtStreamWaitEvent(void*, void*);
int HcclGetRootInfo(RootInfo*);
int HcclCommInitRootInfo(uint32_t, const RootInfo*, uint32_t, void**);
int HcclCommDestroy(void*);
int HcclGetCommAsyncError(void*, int*);
int HcclAllReduce(void*, void*, uint64_t, int type, int reduction, void*, void*);
int HcclReduce(void*, void*, uint64_t, int type, int reduction, uint32_t root, void*, void*);
int HcclBroadcast(void*, uint64_t, int type, uint32_t root, void*, void*);
int HcclSend(void*, uint64_t, int type, uint32_t to, void*, void*);
int HcclRecv(void*, uint64_t, int type, uint32_t from, void*, void*);
int HcclBatchSendRecv(Item*, uint32_t, void*, void*);
}

namespace {

constexpr int kInt16 = 1, kInt32 = 2, kFp32 = 4, kUint8 = 7, kFp64 = 10, kBf16 = 11;
constexpr int kSum = 0, kProduct = 1;
constexpr int kParameter = 1, kPointer = 2, kInternal = 4, kNotSupported = 5, kTimeout = 9,
              kRuntime = 15, kAgain = 20;
constexpr int kStreamAborted = 107023, kTaskTimeout = 107020;

// One rank, on the chip of its number.
struct Rank {
  int rank = 0;
  void *comm = nullptr, *stream = nullptr, *src = nullptr, *dst = nullptr;
  static constexpr size_t kBytes = 1 << 20;

  Rank(const RootInfo& info, int number, int size) : rank(number) {
    EXPECT_EQ(aclrtSetDevice(number), 0);
    EXPECT_EQ(HcclCommInitRootInfo(static_cast<uint32_t>(size), &info,
                                   static_cast<uint32_t>(number), &comm),
              0);
    EXPECT_EQ(aclrtCreateStream(&stream), 0);
    EXPECT_EQ(aclrtMalloc(&src, kBytes, 0), 0);
    EXPECT_EQ(aclrtMalloc(&dst, kBytes, 0), 0);
  }
  ~Rank() {
    aclrtDestroyStream(stream);
    if (comm) {
      EXPECT_EQ(HcclCommDestroy(comm), 0);
    }
    aclrtFree(src);
    aclrtFree(dst);
  }
  int sum(uint64_t count = 8, int type = kFp32, int reduction = kSum) const {
    return HcclAllReduce(src, dst, count, type, reduction, comm, stream);
  }
};

class Hccl : public ::testing::Test {
 protected:
  void SetUp() override {
    aclInit(nullptr);
    simulated_forget_failures();
    ASSERT_EQ(aclrtSetDevice(0), 0);
  }
  // body(rank) on a thread for each rank.
  static void with_ranks(int size, const std::function<void(Rank&)>& body) {
    RootInfo info;
    ASSERT_EQ(HcclGetRootInfo(&info), 0);
    std::vector<std::thread> threads;
    for (int number = 0; number < size; ++number)
      threads.emplace_back([=, &body] {
        Rank rank(info, number, size);
        body(rank);
      });
    for (std::thread& thread : threads) thread.join();
  }
};

class Sizes : public Hccl, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Sizes, ::testing::Values(1, 2, 4));

TEST_P(Sizes, AllReduce) {
  with_ranks(GetParam(), [](Rank& rank) {
    std::vector<float> values(200'000, static_cast<float>(rank.rank + 1));
    const size_t bytes = values.size() * sizeof(float);
    ASSERT_EQ(aclrtMemcpy(rank.src, bytes, values.data(), bytes, 1), 0);
    ASSERT_EQ(rank.sum(values.size()), 0);
    ASSERT_EQ(aclrtSynchronizeStream(rank.stream), 0);
    ASSERT_EQ(aclrtMemcpy(values.data(), bytes, rank.dst, bytes, 2), 0);
    for (float value : values) ASSERT_EQ(value, GetParam() * (GetParam() + 1) / 2);
  });
}

TEST_F(Hccl, WrongArguments) {
  with_ranks(2, [](Rank& rank) {
    void *const comm = rank.comm, *const stream = rank.stream;
    EXPECT_EQ(rank.sum(8, kFp64), kNotSupported);
    EXPECT_EQ(rank.sum(8, kUint8), kNotSupported);
    EXPECT_EQ(rank.sum(8, 12), kNotSupported);
    EXPECT_EQ(rank.sum(8, kInt16, kProduct), kNotSupported);
    EXPECT_EQ(rank.sum(8, kBf16, kProduct), kNotSupported);
    EXPECT_EQ(rank.sum(8, kInt32, 4), kParameter);
    EXPECT_EQ(rank.sum(0), kParameter);
    EXPECT_EQ(rank.sum(Rank::kBytes), kParameter);  // beyond the allocation
    float host = 0;
    EXPECT_EQ(HcclAllReduce(&host, rank.dst, 1, kFp32, kSum, comm, stream), kParameter);
    EXPECT_EQ(
        HcclAllReduce(static_cast<char*>(rank.src) + 2, rank.dst, 1, kFp32, kSum, comm, stream),
        kParameter);
    EXPECT_EQ(HcclReduce(rank.src, rank.dst, 1, kFp32, kSum, 2, comm, stream), kParameter);
    EXPECT_EQ(HcclBroadcast(rank.src, 1, kFp32, 7, comm, stream), kParameter);
    const auto self = static_cast<uint32_t>(rank.rank);
    EXPECT_EQ(HcclSend(rank.src, 1, kFp32, self, comm, stream), kParameter);
    EXPECT_EQ(HcclRecv(rank.dst, 1, kFp32, 9, comm, stream), kParameter);
    Item items[] = {{0, rank.src, 1, kFp32, 1 - self}, {0, rank.src, 1, kFp32, 1 - self}};
    EXPECT_EQ(HcclBatchSendRecv(items, 2, comm, stream), kParameter);
    EXPECT_EQ(HcclBatchSendRecv(items, 0, comm, stream), kPointer);
    EXPECT_EQ(HcclAllReduce(rank.src, rank.dst, 1, kFp32, kSum, nullptr, stream), kPointer);
  });
}

TEST_F(Hccl, ThingsOfAnotherChip) {
  with_ranks(2, [](Rank& rank) {
    // The last two chips belong to no rank.
    void *memory = nullptr, *stream = nullptr;
    ASSERT_EQ(aclrtSetDevice(rank.rank + 2), 0);
    ASSERT_EQ(aclrtMalloc(&memory, 64, 0), 0);
    ASSERT_EQ(aclrtCreateStream(&stream), 0);
    EXPECT_EQ(rank.sum(), kRuntime);  // another chip is current
    ASSERT_EQ(aclrtSetDevice(rank.rank), 0);
    EXPECT_EQ(HcclAllReduce(memory, rank.dst, 1, kFp32, kSum, rank.comm, rank.stream), kParameter);
    EXPECT_EQ(HcclAllReduce(rank.src, rank.dst, 1, kFp32, kSum, rank.comm, stream), kRuntime);
    aclrtSetDevice(rank.rank + 2);
    aclrtDestroyStream(stream);
    aclrtFree(memory);
    aclrtSetDevice(rank.rank);
  });
}

TEST_F(Hccl, RanksNeedChipsOfTheirOwn) {
  RootInfo info;
  ASSERT_EQ(HcclGetRootInfo(&info), 0);
  int results[2] = {};
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      void* comm = nullptr;
      aclrtSetDevice(0);
      results[rank] = HcclCommInitRootInfo(2, &info, rank, &comm);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results[0], kParameter);
  EXPECT_EQ(results[1], kParameter);
}

TEST_F(Hccl, RootInfoHasToArriveWhole) {
  RootInfo info;
  ASSERT_EQ(HcclGetRootInfo(&info), 0);
  info.bytes[4107] ^= 1;
  void* comm = nullptr;
  EXPECT_EQ(HcclCommInitRootInfo(1, &info, 0, &comm), kParameter);
}

TEST_F(Hccl, DestroyedCommunicators) {
  with_ranks(1, [](Rank& rank) {
    int failure = 0;
    EXPECT_EQ(HcclGetCommAsyncError(rank.comm, &failure), 0);
    ASSERT_EQ(HcclCommDestroy(rank.comm), 0);
    EXPECT_EQ(rank.sum(), kParameter);
    EXPECT_EQ(HcclCommDestroy(rank.comm), kParameter);
    EXPECT_EQ(HcclGetCommAsyncError(rank.comm, &failure), kParameter);
    rank.comm = nullptr;
  });
}

TEST_F(Hccl, RanksThatDisagree) {
  with_ranks(2, [](Rank& rank) {
    ASSERT_EQ(rank.sum(), 0);
    ASSERT_EQ(aclrtSynchronizeStream(rank.stream), 0);
    ASSERT_EQ(rank.sum(8 + static_cast<uint64_t>(rank.rank)), 0);
    EXPECT_NE(aclrtSynchronizeStream(rank.stream), 0);
    EXPECT_EQ(rank.sum(), kInternal);
  });
}

TEST_F(Hccl, FailuresOnDemand) {
  with_ranks(1, [](Rank& rank) {
    simulated_fail("HcclAllReduce", 2, kInternal, 1);
    simulated_fail("HcclAsyncError", 1, 21, 1);
    EXPECT_EQ(rank.sum(), 0);
    EXPECT_EQ(rank.sum(), kInternal);
    EXPECT_EQ(rank.sum(), 0);
    int failure = 0;
    EXPECT_EQ(HcclGetCommAsyncError(rank.comm, &failure), 0);
    EXPECT_EQ(failure, 21);
    EXPECT_EQ(aclrtSynchronizeStream(rank.stream), 0);
  });
}

TEST_F(Hccl, WaitsEndAtTheirLimits) {
  setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
  setenv("HCCL_EXEC_TIMEOUT", "1", 1);
  RootInfo info;
  void* comm = nullptr;
  ASSERT_EQ(HcclGetRootInfo(&info), 0);
  EXPECT_EQ(HcclCommInitRootInfo(2, &info, 0, &comm), kTimeout);
  with_ranks(2, [](Rank& rank) {
    if (rank.rank == 0) {
      EXPECT_EQ(rank.sum(), kTimeout);
    }
  });
  with_ranks(2, [](Rank& rank) {
    ASSERT_EQ(rank.sum(), 0);
    if (rank.rank == 0) {
      ASSERT_EQ(rank.sum(), 0);
    }
    EXPECT_EQ(aclrtSynchronizeStream(rank.stream), rank.rank == 0 ? kTaskTimeout : 0);
  });
  unsetenv("HCCL_CONNECT_TIMEOUT");
  unsetenv("HCCL_EXEC_TIMEOUT");
}

TEST_F(Hccl, WorkThatIsDropped) {
  with_ranks(2, [](Rank& rank) {
    if (rank.rank == 1) return;
    void *other = nullptr, *event = nullptr;
    ASSERT_EQ(aclrtCreateStream(&other), 0);
    ASSERT_EQ(aclrtCreateEventExWithFlag(&event, 1), 0);
    ASSERT_EQ(HcclRecv(rank.dst, 8, kFp32, 1, rank.comm, rank.stream), 0);
    ASSERT_EQ(aclrtRecordEvent(event, rank.stream), 0);
    ASSERT_EQ(aclrtStreamWaitEvent(other, event), 0);
    EXPECT_EQ(HcclCommDestroy(rank.comm), kAgain);
    ASSERT_EQ(aclrtStreamAbort(rank.stream), 0);
    EXPECT_EQ(aclrtSynchronizeStream(rank.stream), kStreamAborted);
    EXPECT_EQ(aclrtSynchronizeStream(rank.stream), 0);  // told once
    int status = 1;
    EXPECT_EQ(aclrtQueryEventStatus(event, &status), 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(aclrtSynchronizeEvent(event), kStreamAborted);
    // A stream that waits for the event has to be aborted as well.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(aclrtStreamQuery(other, &status), 0);
    EXPECT_EQ(status, 1);
    ASSERT_EQ(aclrtStreamAbort(other), 0);
    EXPECT_EQ(aclrtSynchronizeStream(other), kStreamAborted);
    aclrtDestroyStream(other);
  });
}

TEST_F(Hccl, DestroyEndsWhatConnects) {
  with_ranks(2, [](Rank& rank) {
    if (rank.rank == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::thread destroyer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_EQ(HcclCommDestroy(rank.comm), 0);
    });
    EXPECT_EQ(rank.sum(), kInternal);
    destroyer.join();
    rank.comm = nullptr;
  });
}

}  // namespace
