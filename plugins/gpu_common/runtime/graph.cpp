// SPDX-License-Identifier: Apache-2.0
// Work recorded from a stream, launched again as one piece.
#include <new>

#include "runtime/device.hpp"

struct tenon_graph_s {
  gpu::GraphExec exec = nullptr;
};

namespace gpu {
namespace {

tenon_status capture_begin(tenon_device device, tenon_stream stream, tenon_err* err) {
  if (!stream)
    return fail(err, TENON_INVALID_ARGUMENT,
                "capture_begin: expected a stream that was created, got the synchronous one");
  Current current(device);
  // What the synchronous stream has queued must not become part of the graph as a dependency: the
  // recording could not be launched twice.
  Error error = driver.stream_sync(device->synchronous.stream);
  std::lock_guard lock(stream->mutex);
  if (!error) error = driver.capture_begin(stream->stream, kCaptureRelaxed);
  if (error) return fail_device(device, stream, error, err, "capture_begin");
  stream->capturing = true;
  return TENON_OK;
}

tenon_status capture_end(tenon_device device, tenon_stream stream, tenon_graph* out,
                         tenon_err* err) {
  Current current(device);
  Graph recorded = nullptr;
  Error error;
  {
    std::lock_guard lock(stream->mutex);
    if (!stream->capturing)
      return fail(err, TENON_FAILED_PRECONDITION,
                  "capture_end: expected a stream that is captured");
    error = driver.capture_end(stream->stream, &recorded);
    stream->capturing = false;
  }
  // A recording that became invalid can still be given up.
  if (!out && is_capture_error(error)) error = error::kSuccess;
  GraphExec exec = nullptr;
  if (!error && out) error = driver.graph_instantiate(&exec, recorded, 0);
  if (recorded) driver.graph_destroy(recorded);
  if (error) return fail_device(device, stream, error, err, "capture_end");
  if (!out) return TENON_OK;
  auto* graph = new (std::nothrow) tenon_graph_s{exec};
  if (!graph) {
    driver.graph_exec_destroy(exec);
    return fail_host_memory(err);
  }
  *out = graph;
  return TENON_OK;
}

tenon_status graph_launch(tenon_device device, tenon_graph graph, tenon_stream on, tenon_err* err) {
  Current current(device);
  tenon_stream_s& stream = stream_of(device, on);
  Profile::Scope profile(device, stream, TENON_PROFILE_KERNEL, "graph");
  Error error = follow_synchronous(stream);
  if (!error) error = driver.graph_launch(graph->exec, stream.stream);
  profile.finish();
  submitted(stream);
  return error ? fail_device(device, &stream, error, err, "graph_launch") : TENON_OK;
}

void graph_destroy(tenon_device device, tenon_graph graph) {
  Current current(device);
  driver.graph_exec_destroy(graph->exec);
  delete graph;
}

}  // namespace

const tenon_graph_api kGraph = {
    .struct_size = sizeof(tenon_graph_api),
    .reserved = 0,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
};

}  // namespace gpu
