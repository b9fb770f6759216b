// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "../collective/reduce.hpp"
#include "support.hpp"

struct UniqueId {
  char bytes[128];
};

extern "C" {
int ncclGetUniqueId(UniqueId*);
int ncclCommInitRank(void**, int size, UniqueId, int rank);
int ncclCommDestroy(void*);
int ncclCommAbort(void*);
int ncclCommGetAsyncError(void*, int*);
int ncclCommSplit(void*, int color, int key, void** out, void* config);
int ncclCommCount(void*, int*);
int ncclCommUserRank(void*, int*);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllReduce(const void*, void*, size_t, int type, int reduction, void*, void* stream);
int ncclAllGather(const void*, void*, size_t, int type, void*, void* stream);
int ncclReduceScatter(const void*, void*, size_t, int type, int reduction, void*, void* stream);
int ncclBroadcast(const void*, void*, size_t, int type, int root, void*, void* stream);
int ncclReduce(const void*, void*, size_t, int type, int reduction, int root, void*, void*);
int ncclSend(const void*, size_t, int type, int peer, void*, void* stream);
int ncclRecv(void*, size_t, int type, int peer, void*, void* stream);
}

namespace {

using namespace gpu;

class Collectives : public Simulated {
 protected:
  // body(rank, communicator, stream) on a thread for each rank, on alternating devices.
  static void with_ranks(int size, const std::function<void(int, void*, StreamHandle)>& body) {
    UniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), 0);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([=, &body] {
        use_device(rank % 2);
        void* comm = nullptr;
        ASSERT_EQ(ncclCommInitRank(&comm, size, id, rank), 0);
        body(rank, comm, make_stream());
      });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(Collectives, ReduceGatherScatterAndBroadcast) {
  constexpr int kRanks = 4;
  constexpr size_t kCount = 100'000;  // several pieces
  with_ranks(kRanks, [](int rank, void* comm, StreamHandle stream) {
    std::vector<float> values(kCount * kRanks);
    std::iota(values.begin(), values.end(), static_cast<float>(rank));
    float *src = upload(values), *dst = alloc<float>(kCount * kRanks);
    ASSERT_EQ(ncclAllReduce(src, dst, kCount, kFloat32, kSum, comm, stream), 0);
    ASSERT_EQ(stream_sync(stream), 0);
    EXPECT_EQ(download(dst, kCount)[kCount - 1], 4 * (kCount - 1) + 6);
    ASSERT_EQ(ncclAllGather(src, dst, kCount, kFloat32, comm, stream), 0);
    ASSERT_EQ(stream_sync(stream), 0);
    EXPECT_EQ(download(dst, kCount * 4)[3 * kCount + 5], 8);
    ASSERT_EQ(ncclReduceScatter(src, dst, kCount, kFloat32, kMax, comm, stream), 0);
    ASSERT_EQ(stream_sync(stream), 0);
    EXPECT_EQ(download(dst, 1)[0], static_cast<float>(rank) * kCount + 3);
    ASSERT_EQ(ncclBroadcast(src, dst, kCount, kFloat32, 2, comm, stream), 0);
    ASSERT_EQ(stream_sync(stream), 0);
    EXPECT_EQ(download(dst, 1)[0], 2);
    ASSERT_EQ(ncclReduce(src, dst, kCount, kFloat32, kMean, 1, comm, stream), 0);
    ASSERT_EQ(stream_sync(stream), 0);
    EXPECT_EQ(download(dst, 1)[0], rank == 1 ? 1.5f : 2.0f);
    EXPECT_EQ(ncclCommDestroy(comm), 0);
  });
}

TEST_F(Collectives, SixteenBitNumbersAreReducedInFloat32) {
  with_ranks(3, [](int, void* comm, StreamHandle stream) {
    for (int type : {kFloat16, kBfloat16}) {
      const uint16_t third = type == kFloat16 ? 0x3555 : 0x3eab;
      uint16_t* x = upload(std::vector<uint16_t>{third});
      ASSERT_EQ(ncclAllReduce(x, x, 1, type, kSum, comm, stream), 0);  // in place
      ASSERT_EQ(stream_sync(stream), 0);
      EXPECT_EQ(download(x, 1)[0], type == kFloat16 ? 0x3c00 : 0x3f80);
    }
  });
}

TEST_F(Collectives, MessagesOfAGroupCross) {
  with_ranks(2, [](int rank, void* comm, StreamHandle stream) {
    constexpr size_t kCount = 50'000;  // more than a mailbox holds
    int* mine = upload(std::vector<int>(kCount, rank + 1));
    int* theirs = alloc<int>(kCount);
    ASSERT_EQ(ncclGroupStart(), 0);
    ASSERT_EQ(ncclSend(mine, kCount, kInt32, 1 - rank, comm, stream), 0);
    ASSERT_EQ(ncclRecv(theirs, kCount, kInt32, 1 - rank, comm, stream), 0);
    ASSERT_EQ(ncclGroupEnd(), 0);
    ASSERT_EQ(stream_sync(stream), 0);
    EXPECT_EQ(download(theirs, kCount)[kCount - 1], 2 - rank);
  });
}

TEST_F(Collectives, OneThreadJoinsForAllInAGroup) {
  UniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), 0);
  void* comms[2] = {};
  StreamHandle streams[2];
  int* values[2];
  ASSERT_EQ(ncclGroupStart(), 0);
  for (int rank : {0, 1}) {
    use_device(rank);
    ASSERT_EQ(ncclCommInitRank(&comms[rank], 2, id, rank), 0);
    streams[rank] = make_stream();
    values[rank] = upload(std::vector<int>{rank + 1});
  }
  ASSERT_EQ(ncclGroupEnd(), 0);
  ASSERT_EQ(ncclGroupStart(), 0);
  for (int rank : {0, 1})
    ASSERT_EQ(
        ncclAllReduce(values[rank], values[rank], 1, kInt32, kSum, comms[rank], streams[rank]), 0);
  ASSERT_EQ(ncclGroupEnd(), 0);
  for (int rank : {0, 1}) {
    ASSERT_EQ(stream_sync(streams[rank]), 0);
    EXPECT_EQ(download(values[rank], 1)[0], 3);
  }
  use_device(0);
}

TEST_F(Collectives, AreCapturedInGraphs) {
  with_ranks(2, [](int rank, void* comm, StreamHandle stream) {
    int* x = upload(std::vector<int>{rank + 1});
    GraphHandle graph = nullptr;
    ExecHandle exec = nullptr;
    ASSERT_EQ(capture_begin(stream, 2), 0);
    ASSERT_EQ(ncclAllReduce(x, x, 1, kInt32, kSum, comm, stream), 0);
    ASSERT_EQ(capture_end(stream, &graph), 0);
    ASSERT_EQ(graph_instantiate(&exec, graph, 0), 0);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(graph_launch(exec, stream), 0);
    ASSERT_EQ(stream_sync(stream), 0);
    EXPECT_EQ(download(x, 1)[0], 12);  // 3, 6, 12
  });
}

TEST_F(Collectives, CommunicatorsSplit) {
  with_ranks(4, [](int rank, void* comm, StreamHandle stream) {
    void* part = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, rank % 2, -rank, &part, nullptr), 0);
    int size = 0, number = 0;
    ASSERT_EQ(ncclCommCount(part, &size), 0);
    ASSERT_EQ(ncclCommUserRank(part, &number), 0);
    EXPECT_EQ(size, 2);
    EXPECT_EQ(number, rank < 2 ? 1 : 0);  // ordered by the key
    int* x = upload(std::vector<int>{rank});
    ASSERT_EQ(ncclAllReduce(x, x, 1, kInt32, kSum, part, stream), 0);
    ASSERT_EQ(stream_sync(stream), 0);
    EXPECT_EQ(download(x, 1)[0], rank % 2 ? 4 : 2);
  });
}

TEST_F(Collectives, AnAbortEndsTheWait) {
  with_ranks(2, [](int rank, void* comm, StreamHandle stream) {
    if (rank == 1) return;  // never takes part
    int* x = upload(std::vector<int>{1});
    ASSERT_EQ(ncclAllReduce(x, x, 1, kInt32, kSum, comm, stream), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(stream_query(stream), 600);
    EXPECT_EQ(ncclCommAbort(comm), 0);
    EXPECT_EQ(stream_sync(stream), 0);
  });
}

TEST_F(Collectives, RanksThatDisagreeAreTold) {
  with_ranks(2, [](int rank, void* comm, StreamHandle stream) {
    int* x = upload(std::vector<int>{1, 2});
    ASSERT_EQ(ncclAllReduce(x, x, static_cast<size_t>(rank + 1), kInt32, kSum, comm, stream), 0);
    ASSERT_EQ(stream_sync(stream), 0);
    int error = 0;
    ASSERT_EQ(ncclCommGetAsyncError(comm, &error), 0);
    EXPECT_EQ(error, 5);
  });
}

TEST_F(Collectives, MistakesAreRefused) {
  with_ranks(1, [](int, void* comm, StreamHandle stream) {
    int on_host = 0, *x = upload(std::vector<int>{1});
    EXPECT_EQ(ncclAllReduce(&on_host, x, 1, kInt32, kSum, comm, stream), 4);
    EXPECT_EQ(ncclAllReduce(x, x, 1, 99, kSum, comm, stream), 4);
    EXPECT_EQ(ncclBroadcast(x, x, 1, kInt32, 1, comm, stream), 4);
    EXPECT_EQ(ncclAllReduce(x, x, 1, kInt32, kSum, nullptr, stream), 4);
    EXPECT_EQ(ncclGroupEnd(), 5);
    void* again = nullptr;
    EXPECT_EQ(ncclCommInitRank(&again, 1, UniqueId{}, 0), 4);
  });
}

// Two processes: this program runs again for the second rank.
TEST_F(Collectives, ProcessesMeet) {
  UniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), 0);
  std::string text;
  for (unsigned char byte : id.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  const pid_t child = fork();
  if (child == 0) {
    setenv("SIMULATED_TEST_ID", text.c_str(), 1);
    execl("/proc/self/exe", "test", "--gtest_filter=OtherRank.*", "--gtest_also_run_disabled_tests",
          static_cast<char*>(nullptr));
    _exit(1);
  }
  void* comm = nullptr;
  ASSERT_EQ(ncclCommInitRank(&comm, 2, id, 0), 0);
  int* x = upload(std::vector<int>{40});
  StreamHandle stream = make_stream();
  ASSERT_EQ(ncclAllReduce(x, x, 1, kInt32, kSum, comm, stream), 0);
  ASSERT_EQ(stream_sync(stream), 0);
  EXPECT_EQ(download(x, 1)[0], 42);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  // The other rank has gone: a wait for it says so, and ends with an abort.
  ASSERT_EQ(ncclAllReduce(x, x, 1, kInt32, kSum, comm, stream), 0);
  int error = 0;
  for (int i = 0; i < 500 && error == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(ncclCommGetAsyncError(comm, &error), 0);
  }
  EXPECT_EQ(error, 6);
  EXPECT_EQ(ncclCommAbort(comm), 0);
  EXPECT_EQ(stream_sync(stream), 0);
}

TEST(OtherRank, DISABLED_AddsTwo) {
  const char* text = std::getenv("SIMULATED_TEST_ID");
  ASSERT_NE(text, nullptr);
  UniqueId id;
  for (size_t i = 0; i < sizeof id.bytes; ++i)
    id.bytes[i] = static_cast<char>(std::stoi(std::string(text + 2 * i, 2), nullptr, 16));
  use_device(1);
  void* comm = nullptr;
  ASSERT_EQ(ncclCommInitRank(&comm, 2, id, 1), 0);
  int* x = upload(std::vector<int>{2});
  StreamHandle stream = make_stream();
  ASSERT_EQ(ncclAllReduce(x, x, 1, kInt32, kSum, comm, stream), 0);
  ASSERT_EQ(stream_sync(stream), 0);
  EXPECT_EQ(download(x, 1)[0], 42);
}

}  // namespace
