// SPDX-License-Identifier: Apache-2.0
// Cost of a pair of allocate and deallocate: from the thread's cache, from the device's segments,
// and what malloc takes for the same.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "kernel_core/memory/allocator.hpp"
#include "tests/core/fake_device.hpp"

namespace {

using namespace tenon::core;
struct Host {};
struct Plain {};

Device& host() { return tenon::test::Fake<Host>::device("benchhost", TENON_DEVICE_HOST_MEMORY); }
Device& plain() { return tenon::test::Fake<Plain>::device("benchplain", 0); }

void pairs(benchmark::State& state, Device& device) {
  uint64_t bytes = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    void* data;
    allocate(device, bytes, nullptr, &data, nullptr);
    benchmark::DoNotOptimize(data);
    deallocate(device, data, bytes, nullptr);
  }
}

void thread_cache(benchmark::State& state) { pairs(state, host()); }
void device_segments(benchmark::State& state) { pairs(state, plain()); }

void glibc(benchmark::State& state) {
  size_t bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    void* data = std::aligned_alloc(64, bytes);
    benchmark::DoNotOptimize(data);
    std::free(data);
  }
}

// As many alive at once as a step of a model has tensors.
void batch_of_64(benchmark::State& state) {
  std::vector<void*> blocks(64);
  uint64_t bytes = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    for (void*& data : blocks) allocate(host(), bytes, nullptr, &data, nullptr);
    for (void* data : blocks) deallocate(host(), data, bytes, nullptr);
  }
  state.SetItemsProcessed(state.iterations() * 64);
}

void live_blocks(benchmark::State& state) {
  std::vector<void*> blocks(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    for (void*& data : blocks) allocate(host(), 200, nullptr, &data, nullptr);
    for (void* data : blocks) deallocate(host(), data, 200, nullptr);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(thread_cache)->Arg(64)->Arg(4096)->Arg(1 << 20);
BENCHMARK(device_segments)->Arg(64)->Arg(4096)->Arg(1 << 20)->Arg(64 << 20);
BENCHMARK(glibc)->Arg(64)->Arg(4096)->Arg(1 << 20)->Arg(64 << 20);
BENCHMARK(batch_of_64)->Arg(64)->Arg(4096)->Arg(65536);
BENCHMARK(live_blocks)->Arg(1000)->Arg(100000);

}  // namespace

BENCHMARK_MAIN();
