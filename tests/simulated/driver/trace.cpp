// SPDX-License-Identifier: Apache-2.0
#include "trace.hpp"

#include <atomic>
#include <chrono>

#include "device.hpp"
#include "functions.hpp"

namespace simulated {
namespace {

std::atomic<void (*)(uint64_t)> on_call{nullptr};
std::atomic<void (*)(const SimulatedWork*)> on_work{nullptr};
std::atomic<uint64_t> calls{0};
thread_local uint64_t last_call = 0, launching_graph = 0;

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

void trace_call() {
  const auto listener = on_call.load(std::memory_order_acquire);
  if (!listener) return;
  last_call = ++calls;
  listener(last_call);
}

uint64_t traced_call() { return last_call; }

Work traced(const Stream& stream, int kind, std::string name, uint64_t bytes, Work work) {
  const int device = stream.device.ordinal;
  return [=, correlation = last_call, name = std::move(name), work = std::move(work)]() -> Error {
    const auto listener = on_work.load(std::memory_order_acquire);
    if (!listener) return work();
    SimulatedWork told = {
        kind,        launching_graph ? launching_graph : correlation, bytes, now(), 0, device,
        name.c_str()};
    const Error error = work();
    told.end_ns = now();
    listener(&told);
    return error;
  };
}

TracedGraph::TracedGraph(uint64_t correlation) { launching_graph = correlation; }
TracedGraph::~TracedGraph() { launching_graph = 0; }

}  // namespace simulated

SIMULATED_EXPORT void simulated_trace(void (*call)(uint64_t), void (*work)(const SimulatedWork*)) {
  simulated::on_call = call;
  simulated::on_work = work;
}
