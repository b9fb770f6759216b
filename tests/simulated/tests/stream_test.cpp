// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>

#include "support.hpp"

namespace {

using namespace gpu;
using namespace std::chrono_literals;

class Streams : public Simulated {
 protected:
  // Keeps the stream busy until `open` is set.
  static void block(StreamHandle stream, std::atomic<bool>& open) {
    ASSERT_EQ(launch_host(
                  stream,
                  [](void* user) {
                    while (!*static_cast<std::atomic<bool>*>(user))
                      std::this_thread::sleep_for(1ms);
                  },
                  &open),
              0);
  }
};

TEST_F(Streams, RunWhileTheCallerGoesOn) {
  StreamHandle stream = make_stream();
  std::atomic<bool> open{false};
  block(stream, open);
  EXPECT_EQ(stream_query(stream), 600);
  open = true;
  EXPECT_EQ(stream_sync(stream), 0);
  EXPECT_EQ(stream_query(stream), 0);
  EXPECT_EQ(stream_destroy(stream), 0);
  EXPECT_EQ(stream_sync(stream), 400);  // the handle is stale
}

TEST_F(Streams, HostMemoryIsReadWhenTheCopyRuns) {
  StreamHandle stream = make_stream();
  std::atomic<bool> open{false};
  int* memory = upload(std::vector<int>{0});
  int value = 1;
  block(stream, open);
  ASSERT_EQ(copy_to_device(memory, &value, sizeof value, stream), 0);
  value = 2;  // the mistake that a caller must not make
  open = true;
  ASSERT_EQ(stream_sync(stream), 0);
  EXPECT_EQ(download(memory, 1)[0], 2);
}

TEST_F(Streams, NothingOrdersTwoStreamsButAnEvent) {
  StreamHandle first = make_stream(), second = make_stream();
  EventHandle event = nullptr;
  ASSERT_EQ(event_create(&event, 0), 0);
  std::atomic<bool> open{false};
  block(first, open);
  ASSERT_EQ(event_record(event, first), 0);
  EXPECT_EQ(stream_sync(second), 0);
  EXPECT_EQ(event_query(event), 600);
  ASSERT_EQ(stream_wait(second, event, 0), 0);
  EXPECT_EQ(stream_query(second), 600);
  open = true;
  EXPECT_EQ(stream_sync(second), 0);
  EXPECT_EQ(event_query(event), 0);
  EXPECT_EQ(event_destroy(event), 0);
  EXPECT_EQ(event_sync(event), 400);
}

TEST_F(Streams, EventsMeasureTime) {
  StreamHandle stream = make_stream();
  EventHandle begin = nullptr, end = nullptr, timeless = nullptr;
  ASSERT_EQ(event_create(&begin, 0), 0);
  ASSERT_EQ(event_create(&end, 0), 0);
  ASSERT_EQ(event_create(&timeless, 2), 0);
  ASSERT_EQ(event_record(begin, stream), 0);
  ASSERT_EQ(launch_host(
                stream, [](void*) { std::this_thread::sleep_for(20ms); }, nullptr),
            0);
  ASSERT_EQ(event_record(end, stream), 0);
  ASSERT_EQ(event_record(timeless, stream), 0);
  ASSERT_EQ(event_sync(timeless), 0);
  float milliseconds = 0;
  ASSERT_EQ(event_elapsed(&milliseconds, begin, end), 0);
  EXPECT_GE(milliseconds, 20);
  EXPECT_EQ(event_elapsed(&milliseconds, begin, timeless), 400);
}

TEST_F(Streams, TheDefaultStreamAndBlockingOnesWaitForOneAnother) {
  StreamHandle blocking = nullptr, free = make_stream();
  ASSERT_EQ(stream_create(&blocking, 0, 0), 0);
  std::atomic<bool> open{false};
  block(blocking, open);
  ASSERT_EQ(launch_host(
                nullptr, [](void*) {}, nullptr),
            0);
  EXPECT_EQ(stream_query(nullptr), 600);
  EXPECT_EQ(stream_sync(free), 0);
  open = true;
  EXPECT_EQ(stream_sync(nullptr), 0);
}

TEST_F(Streams, AnEventBelongsToItsDevice) {
  EventHandle event = nullptr;
  ASSERT_EQ(event_create(&event, 0), 0);
  use_device(1);
  StreamHandle other = make_stream();
  EXPECT_EQ(event_record(event, other), 400);
  use_device(0);
}

TEST_F(Streams, ManyAtOnce) {
  FunctionHandle add =
      kernel(load("extern \"C\" __global__ void add(int* x) { atomicAdd(x, 1); }"), "add");
  int* memory = upload(std::vector<int>{0});
  std::vector<StreamHandle> streams;
  for (int i = 0; i < 40; ++i) streams.push_back(make_stream());
  for (int round = 0; round < 5; ++round)
    for (StreamHandle stream : streams) ASSERT_EQ(gpu::run(add, 2, 16, stream, memory), 0);
  ASSERT_EQ(synchronize(), 0);
  EXPECT_EQ(download(memory, 1)[0], 40 * 5 * 32);
  for (StreamHandle stream : streams) EXPECT_EQ(stream_destroy(stream), 0);
}

}  // namespace
