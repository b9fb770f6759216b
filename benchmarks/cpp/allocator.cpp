// SPDX-License-Identifier: Apache-2.0
// Cost of a pair of allocate and deallocate: from the thread's cache, from the device's segments,
// and what malloc takes for the same; with many blocks alive; and over whole training runs, with
// the memory they reserve. LD_PRELOAD puts another malloc into the rows of malloc.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "tests/core/trace_replay.hpp"

namespace {

using namespace tenon::core;
using namespace tenon::test;
struct Host {};
struct Plain {};
struct Fixed {};
struct Varying {};

Device& host() { return Fake<Host>::device("benchhost", TENON_DEVICE_HOST_MEMORY); }
Device& plain() { return Fake<Plain>::device("benchplain", 0); }

// Allocators to compare, each a pair of functions.
struct FromHost {
  static void* take(uint64_t bytes) { return take_from(host(), bytes); }
  static void give(void* data, uint64_t bytes) { deallocate(host(), data, bytes, nullptr); }
  static void* take_from(Device& device, uint64_t bytes) {
    void* data = nullptr;
    allocate(device, bytes, nullptr, &data, nullptr);
    return data;
  }
};
struct FromDevice {
  static void* take(uint64_t bytes) { return FromHost::take_from(plain(), bytes); }
  static void give(void* data, uint64_t bytes) { deallocate(plain(), data, bytes, nullptr); }
};
struct FromMalloc {
  static void* take(uint64_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  static void give(void* data, uint64_t) { std::free(data); }
};

template <class Allocator>
void pair(benchmark::State& state) {
  uint64_t bytes = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    void* data = Allocator::take(bytes);
    benchmark::DoNotOptimize(static_cast<const void*>(data));
    Allocator::give(data, bytes);
  }
}

// As many alive at once as the argument says: all are allocated, then all given back, in order.
template <class Allocator>
void live_blocks(benchmark::State& state) {
  constexpr uint64_t kBytes = 200;
  std::vector<void*> blocks(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    for (void*& data : blocks) data = Allocator::take(kBytes);
    for (void* data : blocks) Allocator::give(data, kBytes);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// One block goes and one comes while so many others, of all sizes up to 2 KiB, stay.
template <class Allocator>
void among_live_blocks(benchmark::State& state) {
  std::mt19937 random(1);
  std::vector<std::pair<void*, uint64_t>> blocks(static_cast<size_t>(state.range(0)));
  for (auto& [data, bytes] : blocks) {
    bytes = 1 + random() % (uint64_t{16} << (random() % 8));
    data = Allocator::take(bytes);
  }
  std::vector<uint32_t> order(1 << 16);
  for (uint32_t& at : order) at = static_cast<uint32_t>(random() % blocks.size());
  size_t turn = 0;
  for (auto _ : state) {
    auto& [data, bytes] = blocks[order[turn++ % order.size()]];
    Allocator::give(data, bytes);
    data = Allocator::take(bytes);
  }
  for (auto& [data, bytes] : blocks) Allocator::give(data, bytes);
}

// One iteration is one training step.
template <class Driver>
void training(benchmark::State& state, const char* kind, bool varying,
              std::unique_ptr<TracedModel> (*build)(TraceRecorder&)) {
  constexpr int kSettle = 500;
  TraceRecorder recorder;
  auto model = build(recorder);
  Device& device = Driver::device(kind);
  DeviceMemory::of(device).trim();
  TraceReplay replay(device);
  std::mt19937 random(1);
  auto next = [&] {
    model->step(varying ? 64 + random() % 961 : 32);
    return recorder.take_events();
  };
  for (int step = 0; step < kSettle; ++step) replay.run(next());
  uint64_t calls = Driver::calls;
  int64_t events = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto trace = next();
    events += static_cast<int64_t>(trace.size());
    state.ResumeTiming();
    replay.run(trace);
  }
  state.SetItemsProcessed(events);
  state.counters["fragmentation"] = replay.fragmentation();
  state.counters["driver_calls"] = static_cast<double>(Driver::calls - calls);
}

void resnet18(benchmark::State& state) {
  training<AddressDevice<Fixed>>(state, "benchfixed", false, traced_resnet18);
}
void gpt_of_varying_lengths(benchmark::State& state) {
  training<AddressDevice<Varying>>(state, "benchvarying", true, traced_gpt);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (int64_t bytes : {64, 4096, 1 << 20, 16 << 20, 64 << 20}) b->Arg(bytes);
}
void counts(benchmark::internal::Benchmark* b) {
  for (int64_t count = 1000; count <= 1000000; count *= 10) b->Arg(count);
}

BENCHMARK(pair<FromHost>)->Apply(sizes);
BENCHMARK(pair<FromDevice>)->Apply(sizes);
BENCHMARK(pair<FromMalloc>)->Apply(sizes);
BENCHMARK(live_blocks<FromHost>)->Apply(counts);
BENCHMARK(live_blocks<FromDevice>)->Apply(counts);
BENCHMARK(live_blocks<FromMalloc>)->Apply(counts);
BENCHMARK(among_live_blocks<FromHost>)->Apply(counts);
BENCHMARK(among_live_blocks<FromDevice>)->Apply(counts);
BENCHMARK(among_live_blocks<FromMalloc>)->Apply(counts);
BENCHMARK(resnet18);
BENCHMARK(gpt_of_varying_lengths);

}  // namespace

BENCHMARK_MAIN();
