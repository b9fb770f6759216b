// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "support.hpp"

namespace opencl_test {
namespace {

// Slow enough that what does not wait is caught: one item counts to `turns` before it writes.
constexpr char kSlow[] = R"(
TK_KERNEL void slow_set(TK_BUFFER(tk_i32, out), tk_i32 value, tk_i64 turns) {
  TK_BIND(tk_i32, out);
  volatile tk_i32 sink = 0;
  for (tk_i64 i = 0; i < turns; ++i) sink += 1;
  out[tk_global_id(0)] = value;
}
TK_KERNEL void add_one(TK_BUFFER(tk_i32, out)) {
  TK_BIND(tk_i32, out);
  out[tk_global_id(0)] += 1;
}
)";
constexpr int64_t kTurns = 20'000'000;

class OpenclStream : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!device_) return;
    tenon_program program = build(kSlow);
    slow_ = kernel(program, "slow_set");
    add_ = kernel(program, "add_one");
    memory_ = device_copy(std::vector<int32_t>{-1});
    // Compiled now, not while something is timed.
    launch(slow_, {buffer(memory_), value(int32_t{0}), value(int64_t{1})}, 1, 1);
    launch(add_, {buffer(memory_)}, 1, 1);
    EXPECT_OK(api()->sync(device_, nullptr, err));
  }
  void slow_set(int32_t number, tenon_stream stream) {
    launch(slow_, {buffer(memory_), value(number), value(kTurns)}, 1, 1, stream);
  }
  void add_one(tenon_stream stream) { launch(add_, {buffer(memory_)}, 1, 1, stream); }
  int32_t result(tenon_stream stream = nullptr) { return values<int32_t>(memory_, 1, stream)[0]; }
  int32_t is_done(tenon_event event) {
    int32_t done = -1;
    EXPECT_OK(async()->event_query(device_, event, &done, err));
    return done;
  }

  tenon_kernel slow_ = nullptr, add_ = nullptr;
  void* memory_ = nullptr;
};

TEST_F(OpenclStream, RunsItsWorkInOrder) {
  tenon_stream stream = new_stream();
  slow_set(10, stream);
  for (int i = 0; i < 100; ++i) add_one(stream);
  EXPECT_EQ(result(stream), 110);
}

TEST_F(OpenclStream, LaunchesDoNotWait) {
  tenon_stream stream = new_stream();
  tenon_event event = new_event();
  // On a busy machine the work may be done before this thread is asked again: not every time.
  int32_t done = 1;
  for (int attempt = 0; attempt < 20 && done; ++attempt) {
    slow_set(3, stream);
    EXPECT_OK(async()->event_record(device_, event, stream, err));
    done = is_done(event);
    EXPECT_OK(async()->event_sync(device_, event, err));
  }
  EXPECT_EQ(done, 0);
  EXPECT_EQ(is_done(event), 1);
}

// Note [The synchronous stream]
TEST_F(OpenclStream, SynchronousWorkIsFinishedForOtherStreams) {
  for (int32_t round = 0; round < 5; ++round) {
    slow_set(round * 10, nullptr);
    tenon_stream stream = new_stream();
    add_one(stream);
    EXPECT_EQ(result(stream), round * 10 + 1);
    slow_set(7, nullptr);  // a stream that has waited once waits again
    add_one(stream);
    EXPECT_EQ(result(stream), 8);
  }
}

TEST_F(OpenclStream, SynchronousWorkIsFinishedForEvents) {
  tenon_event event = new_event();
  slow_set(5, nullptr);
  EXPECT_OK(async()->event_record(device_, event, nullptr, err));
  EXPECT_EQ(is_done(event), 1);
  EXPECT_EQ(result(), 5);
}

TEST_F(OpenclStream, SynchronousWorkIsFinishedForOtherThreads) {
  slow_set(40, nullptr);
  int32_t seen = 0;
  std::thread([&] {
    add_one(nullptr);
    seen = result();
  }).join();
  EXPECT_EQ(seen, 41);
}

TEST_F(OpenclStream, EventsOrderStreams) {
  tenon_stream first = new_stream(), second = new_stream();
  tenon_event event = new_event();
  for (int32_t round = 0; round < 5; ++round) {
    slow_set(round * 10, first);
    EXPECT_OK(async()->event_record(device_, event, first, err));  // again and again: legal
    EXPECT_OK(async()->stream_wait(device_, second, event, err));
    add_one(second);
    EXPECT_EQ(result(second), round * 10 + 1);
  }
}

TEST_F(OpenclStream, TheSynchronousStreamWaitsForEventsToo) {
  tenon_stream stream = new_stream();
  tenon_event event = new_event();
  slow_set(20, stream);
  EXPECT_OK(async()->event_record(device_, event, stream, err));
  EXPECT_OK(async()->stream_wait(device_, nullptr, event, err));
  add_one(nullptr);
  EXPECT_EQ(result(), 21);
}

TEST_F(OpenclStream, AWaitMeansTheRecordingBeforeIt) {
  tenon_stream first = new_stream(), second = new_stream();
  tenon_event event = new_event();
  EXPECT_OK(async()->event_record(device_, event, first, err));  // nothing queued: passed
  EXPECT_OK(async()->stream_wait(device_, second, event, err));
  slow_set(1, first);
  EXPECT_OK(async()->event_record(device_, event, first, err));
  tenon_event after = new_event();
  EXPECT_OK(async()->event_record(device_, after, second, err));
  EXPECT_EQ(is_done(after), 1);
  EXPECT_EQ(is_done(event), 0);
}

TEST_F(OpenclStream, UnrecordedEventsBlockNothing) {
  tenon_stream stream = new_stream();
  tenon_event event = new_event();
  EXPECT_EQ(is_done(event), 1);
  EXPECT_OK(async()->event_sync(device_, event, err));
  EXPECT_OK(async()->stream_wait(device_, stream, event, err));
  slow_set(2, stream);
  EXPECT_EQ(result(stream), 2);
}

TEST_F(OpenclStream, SyncOfNullWaitsForAllStreams) {
  std::vector<tenon_event> events;
  for (int i = 0; i < 3; ++i) {
    tenon_stream stream = new_stream();
    slow_set(i, stream);
    events.push_back(new_event());
    EXPECT_OK(async()->event_record(device_, events.back(), stream, err));
  }
  EXPECT_OK(api()->sync(device_, nullptr, err));
  for (tenon_event event : events) EXPECT_EQ(is_done(event), 1);
}

TEST_F(OpenclStream, PageableMemoryIsConsumedOnReturn) {
  tenon_stream stream = new_stream();
  std::vector<int32_t> data(1 << 16, 7);
  void* memory = allocate(data.size() * 4);
  slow_set(0, stream);
  write(memory, data.data(), data.size() * 4, stream);
  std::fill(data.begin(), data.end(), 0);
  EXPECT_EQ(values<int32_t>(memory, data.size(), stream), std::vector<int32_t>(data.size(), 7));
}

TEST_F(OpenclStream, MemoryMayBeFreedWhileItIsUsed) {
  tenon_stream stream = new_stream();
  tenon_alloc_request request = {sizeof request, TENON_ALLOC_DEVICE, 0, 1 << 20, 512, stream};
  void *used = nullptr, *next = nullptr;
  EXPECT_OK(api()->alloc(device_, &request, &used, err));
  int32_t five = 5, nine = 9;
  slow_set(1, stream);
  set(used, 0, 1 << 20, &five, 4, stream);
  move(memory_, used, 4, stream);
  api()->free(device_, used, 1 << 20, stream);
  EXPECT_OK(api()->alloc(device_, &request, &next, err));  // perhaps at the same address
  set(next, 0, 1 << 20, &nine, 4, nullptr);
  EXPECT_EQ(result(stream), 5);
  api()->free(device_, next, 1 << 20, stream);
}

TEST_F(OpenclStream, DestructionWaits) {
  tenon_stream stream = nullptr;
  EXPECT_OK(async()->stream_create(device_, 0, &stream, err));
  slow_set(6, stream);
  async()->stream_destroy(device_, stream);
  EXPECT_EQ(result(), 6);
}

TEST_F(OpenclStream, ThreadsShareKernelsAndTheSynchronousStream) {
  constexpr int kThreads = 4, kRounds = 200;
  std::vector<void*> cells;
  for (int t = 0; t < kThreads; ++t) cells.push_back(device_copy(std::vector<int32_t>{0}));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    tenon_stream stream = t % 2 ? new_stream() : nullptr;
    threads.emplace_back([this, stream, cell = cells[static_cast<size_t>(t)]] {
      for (int i = 0; i < kRounds; ++i) launch(add_, {buffer(cell)}, 1, 1, stream);
      EXPECT_OK(api()->sync(device_, stream, err));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (void* cell : cells) EXPECT_EQ(values<int32_t>(cell, 1)[0], kRounds);
}

}  // namespace
}  // namespace opencl_test
