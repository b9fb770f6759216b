// SPDX-License-Identifier: Apache-2.0
// Cost of entering and leaving a parallel region: back to back, after serial work, and after a
// pause long enough for the workers to have gone to sleep.
#include "kernel_core/runtime/thread_pool.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>
#include <vector>

namespace {

using namespace tenon::core;
using Clock = std::chrono::steady_clock;

void nothing(void*, int64_t, int64_t) {}

void busy_for(std::chrono::microseconds time) {
  for (auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

void hot(benchmark::State& state) {
  set_thread_count(static_cast<int32_t>(state.range(0)));
  for (auto _ : state) parallel_for(0, 1000, 1, nothing, nullptr);
}

void after_serial_work(benchmark::State& state) {
  set_thread_count(2);
  for (auto _ : state) {
    busy_for(std::chrono::microseconds(state.range(0)));
    auto start = Clock::now();
    parallel_for(0, 1000, 1, nothing, nullptr);
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
  }
}

// c = a + b: where two threads begin to pay.
void add(benchmark::State& state) {
  set_thread_count(static_cast<int32_t>(state.range(1)));
  struct Vectors {
    std::vector<float> a, b, c;
  };
  size_t size = static_cast<size_t>(state.range(0));
  Vectors vectors{std::vector<float>(size, 1), std::vector<float>(size, 2),
                  std::vector<float>(size)};
  auto body = [](void* user, int64_t begin, int64_t end) {
    auto& v = *static_cast<Vectors*>(user);
    for (int64_t i = begin; i < end; ++i) v.c[i] = v.a[i] + v.b[i];
  };
  for (auto _ : state) parallel_for(0, state.range(0), 1, body, &vectors);
  state.SetBytesProcessed(state.iterations() * state.range(0) * 12);
}

BENCHMARK(hot)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(after_serial_work)->Arg(20)->Arg(150)->Arg(1000)->UseManualTime();
BENCHMARK(add)->ArgsProduct({{1024, 4096, 32768, 1 << 20}, {1, 2}})->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
