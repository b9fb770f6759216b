// SPDX-License-Identifier: Apache-2.0
#include "graph.hpp"

#include <algorithm>
#include <atomic>
#include <random>

#include "../failures.hpp"
#include "stream.hpp"

namespace simulated {
namespace {

std::atomic<int> global_captures{0};

// Every node must come before what the origin of the capture does next.
bool all_joined(const Graph& graph, const std::vector<size_t>& tail) {
  std::vector<bool> reached(graph.nodes.size());
  std::vector<size_t> left = tail;
  while (!left.empty()) {
    const size_t node = left.back();
    left.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    left.insert(left.end(), graph.nodes[node].after.begin(), graph.nodes[node].after.end());
  }
  return std::find(reached.begin(), reached.end(), false) == reached.end();
}

}  // namespace

std::vector<size_t> Graph::order() const {
  std::vector<size_t> result;
  static const uint64_t seed = environment("SIMULATED_SEED", 0);
  static std::atomic<uint64_t> executions{0};
  if (!seed) {
    for (size_t i = 0; i < nodes.size(); ++i) result.push_back(i);
    return result;
  }
  std::mt19937_64 random(seed + executions++);
  std::vector<size_t> missing(nodes.size()), ready;
  std::vector<std::vector<size_t>> next(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].after.size();
    for (size_t before : nodes[i].after) next[before].push_back(i);
    if (missing[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const size_t chosen = random() % ready.size(), node = ready[chosen];
    ready.erase(ready.begin() + static_cast<ptrdiff_t>(chosen));
    result.push_back(node);
    for (size_t each : next[node])
      if (--missing[each] == 0) ready.push_back(each);
  }
  return result;
}

Error begin_capture(const std::shared_ptr<Stream>& stream, int mode) {
  if (stream->is_legacy) return error::STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture()) return error::INVALID_VALUE;
  if (mode < Capture::kGlobal || mode > Capture::kRelaxed) return error::INVALID_VALUE;
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = static_cast<Capture::Mode>(mode);
  if (mode == Capture::kGlobal) ++global_captures;
  stream->join_capture(std::move(capture), {});
  return error::SUCCESS;
}

Error end_capture(const std::shared_ptr<Stream>& stream, std::shared_ptr<Graph>* out) {
  std::shared_ptr<Capture> capture = stream->capture();
  if (!capture) return error::INVALID_VALUE;
  if (capture->origin != stream) return error::STREAM_CAPTURE_UNMATCHED;
  const std::vector<size_t> tail = stream->capture_tail();
  std::vector<std::shared_ptr<Stream>> streams;
  {
    std::lock_guard lock(capture->mutex);
    streams = std::move(capture->streams);
  }
  for (const auto& each : streams) each->leave_capture();
  if (capture->mode == Capture::kGlobal) --global_captures;
  capture->origin = nullptr;
  if (capture->invalidated) return error::STREAM_CAPTURE_INVALIDATED;
  if (!all_joined(*capture->graph, tail)) return error::STREAM_CAPTURE_UNJOINED;
  *out = capture->graph;
  return error::SUCCESS;
}

Error refuse_capture(Stream& stream) {
  std::shared_ptr<Capture> capture = stream.capture();
  if (!capture) return error::SUCCESS;
  std::lock_guard lock(capture->mutex);
  capture->invalidated = true;
  return error::STREAM_CAPTURE_UNSUPPORTED;
}

Error refuse_global_captures() {
  return global_captures ? error::STREAM_CAPTURE_UNSUPPORTED : error::SUCCESS;
}

Error run(GraphExec& exec) {
  std::lock_guard lock(exec.running);
  for (size_t node : exec.graph->order()) TRY(exec.graph->nodes[node].work());
  return error::SUCCESS;
}

}  // namespace simulated
