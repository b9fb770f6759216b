// SPDX-License-Identifier: Apache-2.0
// Work captured from streams, and its execution.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "errors.hpp"

namespace simulated {

class Stream;

// One operation on a device. An error other than 0 makes the device unusable.
using Work = std::function<Error()>;

struct Node {
  Work work;
  std::vector<size_t> after;  // nodes that come first
};

struct Graph {
  std::vector<Node> nodes;
  // The order of one execution: that of the capture, or with SIMULATED_SEED any that keeps the
  // dependencies, so that a dependency which is missing shows.
  std::vector<size_t> order() const;
};

struct GraphExec {
  std::shared_ptr<const Graph> graph;
  std::mutex running;  // executions of one graph do not overlap
};

// A capture in progress. `mutex` guards all of it.
struct Capture {
  enum Mode { kGlobal, kThreadLocal, kRelaxed };
  std::mutex mutex;
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::shared_ptr<Stream> origin;
  std::vector<std::shared_ptr<Stream>> streams;  // part of it, with the origin
  bool invalidated = false;
  Mode mode = kGlobal;
};

Error begin_capture(const std::shared_ptr<Stream>& stream, int mode);
Error end_capture(const std::shared_ptr<Stream>& stream, std::shared_ptr<Graph>* out);
// For calls that wait for a stream: refuses those that are captured, and invalidates the capture.
Error refuse_capture(Stream& stream);
// For calls that may wait for the device (cuMemAlloc, ...): refused while any capture in global
// mode is in progress.
Error refuse_global_captures();

Error run(GraphExec& exec);

}  // namespace simulated
