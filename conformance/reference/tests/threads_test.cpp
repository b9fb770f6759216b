// SPDX-License-Identifier: Apache-2.0
// Many threads at everything at once. Right results show order; the sanitizers' builds show the
// rest.
#include <algorithm>
#include <cstring>
#include <latch>
#include <thread>

#include "../kernels/kernels.hpp"
#include "host.hpp"

namespace reference::test {
namespace {

class Threads : public Runtime {
 protected:
  template <class F>
  static void run(int count, F f) {
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t) threads.emplace_back([=] { f(t); });
    for (std::thread& thread : threads) thread.join();
  }

  // out = x + y on a stream; x and y of `count` numbers.
  void add_on(tenon_stream on, float* x, float* y, float* out, int64_t count) {
    int64_t stride = 1;
    tenon_tensor a = {};
    a.data = x;
    a.ndim = 1;
    a.shape = &count;
    a.strides = &stride;
    a.dtype = TENON_DTYPE_F32;
    a.numel = count;
    tenon_tensor b = a, o = a;
    b.data = y;
    o.data = out;
    current_call = {device, on};
    ok([&](tenon_err* err) { return add(nullptr, &a, &b, &o, err); });
  }
};

// Each thread has two streams, linked by an event; the memory comes from one pool.
TEST_F(Threads, StreamsEventsPoolAndGraphs) {
  ok([&](tenon_err* err) { return kProfile.profile_start(device, err); });
  run(4, [this](int thread) {
    tenon_stream maker = stream(), taker = stream();
    tenon_event event = nullptr;
    ok([&](tenon_err* err) { return kAsync.event_create(device, 0, &event, err); });
    for (int round = 0; round < 40; ++round) {
      const auto count = static_cast<uint64_t>(1000 + 100 * thread + round);
      const uint64_t bytes = count * sizeof(float);
      std::vector<float> numbers(count, static_cast<float>(round));
      float *x = memory<float>(count, maker), *y = memory<float>(count, taker);
      copy(x, numbers.data(), bytes, TENON_COPY_HOST_TO_DEVICE, maker);
      fill(y, count, 1.0f, taker);
      ok([&](tenon_err* err) { return kAsync.event_record(device, event, maker, err); });
      ok([&](tenon_err* err) { return kAsync.stream_wait(device, taker, event, err); });
      add_on(taker, x, y, y, static_cast<int64_t>(count));
      kPool.pool_free(device, x, bytes, taker);
      float expected = static_cast<float>(round) + 1;
      if (round % 5 == 0) {
        tenon_graph graph = nullptr;
        ok([&](tenon_err* err) { return kGraph.capture_begin(device, taker, err); });
        add_on(taker, y, y, y, static_cast<int64_t>(count));
        ok([&](tenon_err* err) { return kGraph.capture_end(device, taker, &graph, err); });
        ok([&](tenon_err* err) { return kGraph.graph_launch(device, graph, taker, err); });
        ok([&](tenon_err* err) { return kDevice.sync(device, taker, err); });
        kGraph.graph_destroy(device, graph);
        expected *= 2;
      }
      copy(numbers.data(), y, bytes, TENON_COPY_DEVICE_TO_HOST, taker);
      EXPECT_EQ(std::count(numbers.begin(), numbers.end(), expected), static_cast<int64_t>(count));
      kPool.pool_free(device, y, bytes, taker);
      if (round % 10 == 0) {
        tenon_profile_record records[16];
        uint32_t drained = 0;
        uint64_t released = 0;
        ok([&](tenon_err* err) {
          return kProfile.profile_drain(device, records, sizeof records[0], 16, &drained, err);
        });
        ok([&](tenon_err* err) { return kPool.pool_trim(device, 0, &released, err); });
        ok([&](tenon_err* err) { return kDevice.sync(device, nullptr, err); });
      }
    }
    kAsync.event_destroy(device, event);
    kAsync.stream_destroy(device, maker);
    kAsync.stream_destroy(device, taker);
  });
}

TEST_F(Threads, Collectives) {
  constexpr int kRanks = 3;
  constexpr uint64_t kCount = 50000;  // several pieces
  tenon_comm_id id;
  ok([&](tenon_err* err) { return kCollective.comm_id_create(device, &id, err); });
  run(kRanks, [&, this](int rank) {
    tenon_stream on = stream();
    tenon_comm comm = nullptr;
    ok([&](tenon_err* err) {
      return kCollective.comm_create(device, &id, rank, kRanks, &comm, err);
    });
    float* data = memory<float>(kCount, on);
    const float expected[] = {6, 6, 1, 3, 2};  // of 1, 2 and 3: sum, product, least, most, mean
    for (int32_t reduce = TENON_REDUCE_SUM; reduce <= TENON_REDUCE_MEAN; ++reduce) {
      fill(data, kCount, static_cast<float>(rank + 1), on);
      ok([&](tenon_err* err) {
        return kCollective.all_reduce(device, comm, data, data, kCount, TENON_DTYPE_F32, reduce, on,
                                      err);
      });
      float last = 0;
      copy(&last, data + kCount - 1, sizeof last, TENON_COPY_DEVICE_TO_HOST, on);
      EXPECT_EQ(last, expected[reduce]);
      fill(data, kCount, static_cast<float>(rank), on);
      ok([&](tenon_err* err) {  // around the ring
        return kCollective.send(device, comm, data, kCount / 2, TENON_DTYPE_F32,
                                (rank + 1) % kRanks, on, err);
      });
      // A letter is taken while the next is written, so the other direction has a stream of its
      // own.
      tenon_stream back = stream();
      float* received = memory<float>(kCount, back);
      ok([&](tenon_err* err) {
        return kCollective.recv(device, comm, received, kCount / 2, TENON_DTYPE_F32,
                                (rank + kRanks - 1) % kRanks, back, err);
      });
      copy(&last, received + kCount / 2 - 1, sizeof last, TENON_COPY_DEVICE_TO_HOST, back);
      EXPECT_EQ(last, static_cast<float>((rank + kRanks - 1) % kRanks));
      kPool.pool_free(device, received, kCount * sizeof(float), back);
      kAsync.stream_destroy(device, back);
    }
    ok([&](tenon_err* err) { return kDevice.sync(device, on, err); });
    kCollective.comm_destroy(device, comm);
    kPool.pool_free(device, data, kCount * sizeof(float), on);
    kAsync.stream_destroy(device, on);
  });
}

TEST_F(Threads, AbortWakesWhoWaits) {
  tenon_comm_id id;
  ok([&](tenon_err* err) { return kCollective.comm_id_create(device, &id, err); });
  std::latch both_created(2);  // else the abort may come while rank 0 still is in comm_create
  run(2, [&, this](int rank) {
    tenon_comm comm = nullptr;
    ok([&](tenon_err* err) { return kCollective.comm_create(device, &id, rank, 2, &comm, err); });
    both_created.arrive_and_wait();
    float* data = memory<float>(1, nullptr);
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      kCollective.comm_abort(device, comm);
    } else {
      tenon_err err;
      EXPECT_EQ(kCollective.recv(device, comm, data, 1, TENON_DTYPE_F32, 1, nullptr, &err),
                TENON_ABORTED);
      EXPECT_EQ(err.text, "reference: recv: the communicator was aborted");
    }
    kCollective.comm_destroy(device, comm);
  });
}

// Groups of 64 fibers each, on several streams, adding to one number.
TEST_F(Threads, CompiledKernels) {
  const char source[] = R"(
TK_KERNEL void count(TK_BUFFER(tk_i32, total)) {
  TK_LOCAL tk_i32 seen[64];
  TK_BIND(tk_i32, total);
  seen[tk_local_id(0)] = 1;
  tk_barrier();
  if (tk_local_id(0) != 0) return;
  tk_i32 sum = 0;
  for (int i = 0; i < 64; ++i) sum += seen[i];
  tk_atomic_add_i32(total, sum);
}
)";
  const tenon_program_request request = {.struct_size = sizeof request,
                                         .reserved = 0,
                                         .must_understand = 0,
                                         .name = "test/count",
                                         .source = source,
                                         .source_bytes = std::strlen(source)};
  tenon_program program = nullptr;
  tenon_kernel kernel = nullptr;
  ok([&](tenon_err* err) { return kCompile.program_create(device, &request, &program, err); });
  ASSERT_TRUE(program);
  ok([&](tenon_err* err) {
    return kCompile.program_kernel(device, program, "count", &kernel, err);
  });
  auto* total = memory<int32_t>(1, nullptr);
  fill(total, 1, 0, nullptr);
  run(3, [&, this](int) {
    tenon_stream on = stream();
    const tenon_launch_arg arg = {TENON_LAUNCH_BUFFER, 0, total, 0};
    const tenon_launch_request launch = {.struct_size = sizeof launch,
                                         .nargs = 1,
                                         .must_understand = 0,
                                         .kernel = kernel,
                                         .args = &arg,
                                         .groups = {7, 1, 1},
                                         .group_size = {64, 1, 1},
                                         .stream = on};
    for (int i = 0; i < 10; ++i)
      ok([&](tenon_err* err) { return kCompile.kernel_launch(device, &launch, err); });
    kAsync.stream_destroy(device, on);
  });
  kCompile.program_destroy(device, program);
  int32_t found = 0;
  copy(&found, total, sizeof found, TENON_COPY_DEVICE_TO_HOST, nullptr);
  EXPECT_EQ(found, 3 * 10 * 7 * 64);
}

}  // namespace
}  // namespace reference::test
