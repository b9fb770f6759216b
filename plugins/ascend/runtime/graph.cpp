// SPDX-License-Identifier: Apache-2.0
// Work recorded from a stream and launched again as one piece: the group `graph`, by the running instances of models of
// AscendCL (aclmdlRI). CANN calls this interface a trial; where it is absent, the device has no such group.
#include <new>
#include <utility>

#include "device.hpp"

struct tenon_graph_s {
  ascend::Model model = nullptr;
  std::vector<void*> host_memory;  // pinned; the recorded copies read it at every launch
};

namespace ascend {
namespace {

void release_host(std::vector<void*>& memory) {
  for (void* each : memory) acl.aclrtFreeHost(each);
  memory.clear();
}

// Relaxed: other threads go on with copies that CANN calls unsafe, and any thread may end the recording. What is
// unsafe on the recorded stream itself is refused in memory.cpp.
tenon_status capture_begin(tenon_device device, tenon_stream stream, tenon_err* err) {
  if (!stream)
    return tenon::fail(err, TENON_INVALID_ARGUMENT,
                       "ascend: capture_begin: expected a stream that was created, got the "
                       "synchronous one");
  if (const tenon_status status = make_current(device, err)) return status;
  if (const int error = acl.aclmdlRICaptureBegin(stream->stream, kCaptureRelaxed))
    return fail_acl(err, "aclmdlRICaptureBegin", error);
  stream->capturing = true;
  return TENON_OK;
}

tenon_status capture_end(tenon_device device, tenon_stream stream, tenon_graph* out,
                         tenon_err* err) {
  if (!stream || !stream->capturing)
    return tenon::fail(err, TENON_FAILED_PRECONDITION,
                       "ascend: capture_end: expected a stream that is captured");
  if (const tenon_status status = make_current(device, err)) return status;
  Model model = nullptr;
  const int error = acl.aclmdlRICaptureEnd(stream->stream, &model);
  stream->capturing = false;
  std::vector<void*> host_memory = std::exchange(stream->captured_memory, {});
  tenon_graph_s* graph = nullptr;
  if (!error && out) graph = new (std::nothrow) tenon_graph_s;
  if (graph) {
    graph->model = model;
    graph->host_memory = std::move(host_memory);
    *out = graph;
    return TENON_OK;
  }
  if (!error) acl.aclmdlRIDestroy(model);
  release_host(host_memory);
  if (!out) return TENON_OK;  // a recording that became invalid can still be given up
  return error ? fail_acl(err, "aclmdlRICaptureEnd", error) : tenon::fail_host_memory(err);
}

tenon_status graph_launch(tenon_device device, tenon_graph graph, tenon_stream stream,
                          tenon_err* err) {
  if (const tenon_status status = make_current(device, err)) return status;
  int error = acl.aclmdlRIExecuteAsync(graph->model, stream_of(device, stream));
  if (error) return fail_acl(err, "aclmdlRIExecuteAsync", error);
  error = stream ? 0 : acl.aclrtSynchronizeStream(device->stream);
  return error ? fail_acl(err, "aclrtSynchronizeStream", error) : TENON_OK;
}

void graph_destroy(tenon_device device, tenon_graph graph) {
  acl.aclrtSetDevice(device->index);
  acl.aclmdlRIDestroy(graph->model);
  release_host(graph->host_memory);
  delete graph;
}

}  // namespace

tenon_status captured_host_memory(tenon_stream stream, const void* from, uint64_t bytes, void** out,
                                  tenon_err* err) try {
  stream->captured_memory.reserve(stream->captured_memory.size() + 1);
  void* memory = nullptr;
  if (const int error = acl.aclrtMallocHost(&memory, bytes))
    return fail_acl(err, "aclrtMallocHost", error);
  stream->captured_memory.push_back(memory);
  std::memcpy(memory, from, bytes);
  *out = memory;
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

const tenon_graph_api kGraph = {
    .struct_size = sizeof(tenon_graph_api),
    .reserved = 0,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
};

bool can_capture() {
  return acl.aclmdlRICaptureBegin && acl.aclmdlRICaptureEnd && acl.aclmdlRIExecuteAsync &&
         acl.aclmdlRIDestroy;
}

}  // namespace ascend
