// SPDX-License-Identifier: Apache-2.0
// What the stand-ins of tracing libraries (tracer/) learn from the driver: its calls, each with a number, and the work that
// they have begun, when it has ended. Nothing is told while there is no listener.
#pragma once

#include <cstdint>
#include <string>

#include "graph.hpp"
#include "stream.hpp"

extern "C" {
enum SimulatedWorkKind { kSimulatedKernel, kSimulatedCopy, kSimulatedPeerCopy, kSimulatedFill };
struct SimulatedWork {
  int kind;
  uint64_t correlation;  // of the call
  uint64_t bytes;
  uint64_t begin_ns, end_ns;  // CLOCK_MONOTONIC
  int device;
  const char* name;  // of a kernel
};
// `call` is called on the thread of the call; `work` on any thread. nullptr: not any more.
void simulated_trace(void (*call)(uint64_t correlation), void (*work)(const SimulatedWork*));
}

namespace simulated {

// Gives a call of this thread its number.
void trace_call();

// The work, with its times told.
Work traced(const Stream& stream, int kind, std::string name, uint64_t bytes, Work work);

// The work of a graph has the number of the call that launched it.
class TracedGraph {
 public:
  explicit TracedGraph(uint64_t correlation);
  ~TracedGraph();
};
uint64_t traced_call();  // the number of this thread's last call

}  // namespace simulated
