// SPDX-License-Identifier: Apache-2.0
// Modules, kernels and graphs.
#include <algorithm>

#include "handles.hpp"
#include "trace.hpp"

namespace simulated {
namespace {

Handles<Module>& modules() {
  static auto* all = new Handles<Module>;
  return *all;
}

Handles<Graph>& graphs() {
  static auto* all = new Handles<Graph>;
  return *all;
}

Handles<GraphExec>& execs() {
  static auto* all = new Handles<GraphExec>;
  return *all;
}

enum FunctionAttribute {
  kMaxThreadsAttribute,
  kSharedBytes,
  kConstantBytes,
  kLocalBytes,
  kRegisters,
  kPtxVersion,
  kBinaryVersion
};

}  // namespace

namespace api {

Error module_load(ModuleHandle* out, const void* image) {
  Device* device;
  TRY(current_device(&device));
  if (!out || !image) return error::INVALID_VALUE;
  std::shared_ptr<Module> module;
  TRY(load_module(*device, image, &module));
  *out = modules().add(std::move(module));
  return error::SUCCESS;
}

// Work that is queued holds the module until it has run.
Error module_unload(ModuleHandle handle) {
  return modules().take(handle) ? error::SUCCESS : error::INVALID_HANDLE;
}

Error module_function(FunctionHandle* out, ModuleHandle handle, const char* name) {
  std::shared_ptr<Module> module = modules().find(handle);
  if (!module) return error::INVALID_HANDLE;
  if (!out || !name) return error::INVALID_VALUE;
  for (const auto& function : module->functions) {
    if (function->info.name != name) continue;
    *out = function.get();
    return error::SUCCESS;
  }
  return error::NOT_FOUND;
}

Error function_attribute(int* value, int attribute, FunctionHandle function) {
  if (!function || !value) return error::INVALID_VALUE;
  switch (attribute) {
    case kMaxThreadsAttribute:
      *value = kMaxThreads;
      return error::SUCCESS;
    case kRegisters:
      *value = 32;
      return error::SUCCESS;
    case kPtxVersion:
    case kBinaryVersion:
      *value = 90;
      return error::SUCCESS;
    case kSharedBytes:
    case kConstantBytes:
    case kLocalBytes:
      *value = 0;
      return error::SUCCESS;
    default:
      return error::INVALID_VALUE;
  }
}

Error occupancy(int* blocks, FunctionHandle function, int threads, size_t) {
  if (!function || !blocks || threads < 1) return error::INVALID_VALUE;
  *blocks = std::max(1, 2048 / threads);
  return error::SUCCESS;
}

Error launch(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
             StreamHandle handle, void** parameters, void** extra) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  if (!function) return error::INVALID_HANDLE;
  if (extra) return error::NOT_SUPPORTED;
  const LaunchShape shape = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return simulated::launch(*static_cast<Function*>(function), shape, *stream, parameters);
}

Error capture_begin(StreamHandle handle, int mode) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  return begin_capture(stream, mode);
}

Error capture_end(StreamHandle handle, GraphHandle* out) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  std::shared_ptr<Graph> graph;
  TRY(end_capture(stream, &graph));
  *out = graphs().add(std::move(graph));
  return error::SUCCESS;
}

Error graph_instantiate(ExecHandle* out, GraphHandle handle, unsigned long long) {
  std::shared_ptr<const Graph> graph = graphs().find(handle);
  if (!graph) return error::INVALID_VALUE;
  auto exec = std::make_shared<GraphExec>();
  exec->graph = std::move(graph);
  *out = execs().add(std::move(exec));
  return error::SUCCESS;
}

Error graph_launch(ExecHandle handle, StreamHandle stream_handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(stream_handle, &stream));
  std::shared_ptr<GraphExec> exec = execs().find(handle);
  if (!exec) return error::INVALID_VALUE;
  return stream->submit([exec, call = traced_call()] {
    const TracedGraph graph(call);
    return run(*exec);
  });
}

Error graph_exec_destroy(ExecHandle handle) {
  return execs().take(handle) ? error::SUCCESS : error::INVALID_VALUE;
}

Error graph_destroy(GraphHandle handle) {
  return graphs().take(handle) ? error::SUCCESS : error::INVALID_VALUE;
}

}  // namespace api
}  // namespace simulated

#if !SIMULATED_HIP
// CUDA 12.4 and later.
SIMULATED_EXPORT int cuFuncGetParamInfo(void* handle, size_t index, size_t* offset, size_t* bytes) {
  using namespace simulated;
  TRY(enter("cuFuncGetParamInfo"));
  const auto& sizes = static_cast<Function*>(handle)->info.parameter_bytes;
  if (index >= sizes.size()) return error::INVALID_VALUE;
  size_t at = 0;
  for (size_t i = 0; i < index; ++i) at = (at + sizes[i] + 7) & ~size_t{7};
  if (offset) *offset = at;
  if (bytes) *bytes = sizes[index];
  return error::SUCCESS;
}
#endif
