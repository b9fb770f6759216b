// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace {

using namespace gpu;

constexpr int kGlobal = 0, kRelaxed = 2;

class Graphs : public Simulated {
 protected:
  void SetUp() override {
    Simulated::SetUp();
    add = kernel(load("extern \"C\" __global__ void add(int* x, int n) { x[INDEX] += n; }"), "add");
  }
  ExecHandle instantiate(GraphHandle graph) {
    ExecHandle exec = nullptr;
    EXPECT_EQ(graph_instantiate(&exec, graph, 0), 0);
    EXPECT_EQ(graph_destroy(graph), 0);
    return exec;
  }
  FunctionHandle add;
};

TEST_F(Graphs, RecordAndReplay) {
  StreamHandle stream = make_stream();
  int* x = upload(std::vector<int>{0, 0});
  ASSERT_EQ(capture_begin(stream, kRelaxed), 0);
  for (int n : {1, 10}) ASSERT_EQ(gpu::run(add, 1, 2, stream, x, n), 0);
  GraphHandle graph = nullptr;
  ASSERT_EQ(capture_end(stream, &graph), 0);
  EXPECT_EQ(download(x, 2), (std::vector<int>{0, 0}));  // recording runs nothing
  ExecHandle exec = instantiate(graph);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(graph_launch(exec, stream), 0);
  ASSERT_EQ(stream_sync(stream), 0);
  EXPECT_EQ(download(x, 2), (std::vector<int>{33, 33}));
  EXPECT_EQ(graph_exec_destroy(exec), 0);
}

TEST_F(Graphs, TakeOtherStreamsIn) {
  StreamHandle origin = make_stream(), other = make_stream();
  EventHandle fork = nullptr, join = nullptr;
  ASSERT_EQ(event_create(&fork, 2), 0);
  ASSERT_EQ(event_create(&join, 2), 0);
  int* x = upload(std::vector<int>{0});
  ASSERT_EQ(capture_begin(origin, kRelaxed), 0);
  ASSERT_EQ(event_record(fork, origin), 0);
  ASSERT_EQ(stream_wait(other, fork, 0), 0);
  ASSERT_EQ(gpu::run(add, 1, 1, other, x, 5), 0);
  int status = 0;
  ASSERT_EQ(stream_capturing(other, &status), 0);
  EXPECT_EQ(status, 1);
  ASSERT_EQ(event_record(join, other), 0);
  EXPECT_EQ(event_query(join), 907);
  ASSERT_EQ(stream_wait(origin, join, 0), 0);
  GraphHandle graph = nullptr;
  ASSERT_EQ(capture_end(origin, &graph), 0);
  ASSERT_EQ(graph_launch(instantiate(graph), origin), 0);
  ASSERT_EQ(stream_sync(origin), 0);
  EXPECT_EQ(download(x, 1)[0], 5);
}

TEST_F(Graphs, MistakesInACapture) {
  StreamHandle origin = make_stream(), other = make_stream();
  EventHandle event = nullptr;
  GraphHandle graph = nullptr;
  ASSERT_EQ(event_create(&event, 2), 0);
  int* x = upload(std::vector<int>{0});

  ASSERT_EQ(capture_begin(origin, kRelaxed), 0);
  EXPECT_EQ(stream_sync(origin), 900);  // waits for what does not run
  EXPECT_EQ(capture_end(origin, &graph), 901);

  ASSERT_EQ(capture_begin(origin, kRelaxed), 0);
  ASSERT_EQ(event_record(event, origin), 0);
  ASSERT_EQ(stream_wait(other, event, 0), 0);
  ASSERT_EQ(gpu::run(add, 1, 1, other, x, 5), 0);
  EXPECT_EQ(capture_end(other, &graph), 903);
  EXPECT_EQ(capture_end(origin, &graph), 904);  // `other` was not joined

  ASSERT_EQ(event_record(event, other), 0);
  ASSERT_EQ(capture_begin(origin, kRelaxed), 0);
  EXPECT_EQ(stream_wait(origin, event, 0), 905);  // an event from outside
  EXPECT_EQ(capture_end(origin, &graph), 901);

  ASSERT_EQ(capture_begin(origin, kGlobal), 0);
  void* memory = nullptr;
  EXPECT_EQ(device_alloc(&memory, 1), 900);
  EXPECT_EQ(capture_end(origin, &graph), 0);
  EXPECT_EQ(graph_destroy(graph), 0);
  EXPECT_EQ(capture_begin(nullptr, kRelaxed), 900);  // the default stream
}

}  // namespace
