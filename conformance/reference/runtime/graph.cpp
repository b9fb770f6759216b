// SPDX-License-Identifier: Apache-2.0
// Graphs: the tasks that a captured stream was given, kept and queued again.
#include "device.hpp"

namespace reference {
namespace {

tenon_status capture_begin(tenon_device device, tenon_stream stream, tenon_err* err) {
  if (!stream)
    return tenon::fail(
        err, TENON_INVALID_ARGUMENT,
        "reference: capture_begin: expected a stream, got the synchronous one, whose work is "
        "never queued");
  if (stream->recording)
    return tenon::fail(err, TENON_FAILED_PRECONDITION,
                       "reference: capture_begin: the stream is being captured already");
  stream->recording = std::make_unique<tenon_graph_s>();
  stream->recording->pool = &device->pool;
  return TENON_OK;
}

tenon_status capture_end(tenon_device, tenon_stream stream, tenon_graph* out, tenon_err* err) {
  if (!stream || !stream->recording)
    return tenon::fail(
        err, TENON_FAILED_PRECONDITION,
        "reference: capture_end: the stream is not being captured; call capture_begin first");
  std::unique_ptr<tenon_graph_s> graph = std::move(stream->recording);
  if (out) *out = graph.release();
  return TENON_OK;
}

tenon_status graph_launch(tenon_device device, tenon_graph graph, tenon_stream stream,
                          tenon_err* err) {
  for (const Task& task : graph->tasks) {
    if (tenon_status status = enqueue(device, stream, task, err); status != TENON_OK) return status;
  }
  return TENON_OK;
}

void graph_destroy(tenon_device, tenon_graph graph) { delete graph; }

}  // namespace

const tenon_graph_api kGraph = {
    .struct_size = sizeof(tenon_graph_api),
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
};

}  // namespace reference
