// SPDX-License-Identifier: Apache-2.0
// A program as its users hold it: the graph, what holds for the whole of it, and its plan.
#pragma once

#include <tenon/services/graph.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "execute/plan.hpp"
#include "ir/graph.hpp"
#include "program/dimensions.hpp"
#include "program/signature.hpp"

namespace tenon::graph {

// An operator has read data that follow from this leaf, which has to be a constant then.
struct HostRead {
  ValueId leaf;
  std::string text;  // of the error otherwise
};

}  // namespace tenon::graph

struct tenon_graph_program {
  std::atomic<uint32_t> references{1};
  tenon::graph::Graph graph;
  // It made gradients itself and freed what they were made from: results carry no history.
  bool is_detached = false;
  // Why gradients cannot be recorded through it; "": they can.
  std::string refuses_gradients;
  // Inputs may not lie in memory that the program writes: every run checks it.
  bool needs_disjoint_inputs = false;
  // Of a program of many sizes: the graph and the plan are those of the recorded ones.
  std::unique_ptr<tenon::graph::Dimensions> dimensions;
  std::unique_ptr<tenon::graph::Instances> instances;
  std::vector<std::string> changes;  // what rewrites and plugins' passes did to it, a line each
  // Of a recording, until it is compared with a second one: what its steps made and somewhere is
  // still held, so that the second one can be asked whether it uses that.
  std::vector<tenon::Tensor> made;
  std::vector<tenon::graph::HostRead> host_reads;  // of a recording, likewise

  // Made at the first use. Throws Error.
  const tenon::graph::Signature& signature() const {
    if (!is_described_.load(std::memory_order_acquire)) [[unlikely]]
      make_signature();
    return signature_;
  }

  // Recordings are verified when they were compared, or first run.
  bool is_verified = true;

  // Made at the first use: what was recorded and will be compared, and what passes change, never
  // runs. Throws Error.
  const tenon::graph::Plan& plan() const {
    if (!is_planned_.load(std::memory_order_acquire)) [[unlikely]]
      make_plan();
    return plan_;
  }

 private:
  void make_plan() const;
  void make_signature() const;

  mutable std::mutex planning_;
  mutable std::atomic<bool> is_planned_{false};
  mutable tenon::graph::Plan plan_;

  // Not std::call_once: its thread-local variables lie in libstdc++, and with the TLS model of this
  // plugin they must lie in the static block: loading fails if a thread has used them before.
  mutable std::mutex describing_;
  mutable std::atomic<bool> is_described_{false};
  mutable tenon::graph::Signature signature_;
};

namespace tenon::graph {

using Program = tenon_graph_program;

struct ReleaseProgram {
  void operator()(Program* program) const {
    if (program->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete program;
  }
};
using ProgramPtr = std::unique_ptr<Program, ReleaseProgram>;

}  // namespace tenon::graph
