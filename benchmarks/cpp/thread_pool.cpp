// SPDX-License-Identifier: Apache-2.0
// Cost of entering and leaving a parallel region of two threads: back to back, after serial work,
// after a pause long enough for the workers to have gone to sleep, and while other processes want
// the same processors. Beside it the compiler's OpenMP, where there is one.
#include "kernel_core/runtime/thread_pool.hpp"

#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;
using Range = void(void*, int64_t, int64_t);

// What runs a range on two threads, or on one.
struct Pool {
  static void threads(int count) { tenon::core::set_thread_count(count); }
  static void run(int64_t size, Range* body, void* user) {
    tenon::core::parallel_for(0, size, 1, body, user);
  }
};

#if defined(_OPENMP)
struct OpenMp {
  static void threads(int count) { omp_set_num_threads(count); }
  static void run(int64_t size, Range* body, void* user) {
#pragma omp parallel
    {
      int64_t count = omp_get_num_threads(), own = omp_get_thread_num();
      body(user, size * own / count, size * (own + 1) / count);
    }
  }
};
#endif

void nothing(void*, int64_t, int64_t) {}

struct Vectors {
  explicit Vectors(size_t size) : a(size, 1), b(size, 2), c(size) {}
  std::vector<float> a, b, c;
};

void add_range(void* user, int64_t begin, int64_t end) {
  auto& v = *static_cast<Vectors*>(user);
  const float *a = v.a.data(), *b = v.b.data();
  float* c = v.c.data();
  for (int64_t i = begin; i < end; ++i) c[i] = a[i] + b[i];
}

template <class Threads>
void hot(benchmark::State& state) {
  Threads::threads(2);
  for (auto _ : state) Threads::run(1000, nothing, nullptr);
}

template <class Threads>
void after_serial_work(benchmark::State& state) {
  Threads::threads(2);
  for (auto _ : state) {
    for (auto end = Clock::now() + std::chrono::microseconds(state.range(0)); Clock::now() < end;) {
    }
    auto start = Clock::now();
    Threads::run(1000, nothing, nullptr);
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
  }
}

template <class Threads>
void after_sleep(benchmark::State& state) {
  Threads::threads(2);
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::milliseconds(state.range(0)));
    auto start = Clock::now();
    Threads::run(1000, nothing, nullptr);
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
  }
}

// c = a + b: where two threads begin to pay.
template <class Threads>
void add(benchmark::State& state) {
  Threads::threads(static_cast<int>(state.range(1)));
  Vectors vectors(static_cast<size_t>(state.range(0)));
  for (auto _ : state) Threads::run(state.range(0), add_range, &vectors);
  state.SetBytesProcessed(state.iterations() * state.range(0) * 12);
}

// The same of 2^20 elements while `state.range(0)` other processes compute without end.
template <class Threads>
void add_beside_busy_processes(benchmark::State& state) {
  Threads::threads(static_cast<int>(state.range(1)));
  Vectors vectors(1 << 20);
  std::vector<pid_t> others(static_cast<size_t>(state.range(0)));
  for (pid_t& other : others) {
    other = fork();
    while (other == 0) benchmark::ClobberMemory();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (auto _ : state) Threads::run(1 << 20, add_range, &vectors);
  for (pid_t other : others) {
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  }
}

#define TENON_BENCHMARK_THREADS(Threads)                                     \
  BENCHMARK(hot<Threads>)->UseRealTime();                                    \
  BENCHMARK(after_serial_work<Threads>)                                      \
      ->Arg(20)                                                              \
      ->Arg(200)                                                             \
      ->Arg(1000)                                                            \
      ->UseManualTime()                                                      \
      ->Iterations(2000);                                                    \
  BENCHMARK(after_sleep<Threads>)->Arg(20)->UseManualTime()->Iterations(50); \
  BENCHMARK(add<Threads>)                                                    \
      ->ArgsProduct({{1024, 4096, 8192, 32768, 1 << 20}, {1, 2}})            \
      ->UseRealTime();                                                       \
  BENCHMARK(add_beside_busy_processes<Threads>)->ArgsProduct({{0, 1, 2}, {1, 2}})->UseRealTime()

TENON_BENCHMARK_THREADS(Pool);
#if defined(_OPENMP)
TENON_BENCHMARK_THREADS(OpenMp);
#endif

}  // namespace

BENCHMARK_MAIN();
