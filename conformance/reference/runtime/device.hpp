// SPDX-License-Identifier: Apache-2.0
// What an open device is, and what the runtime's files offer one another and the kernels.
#pragma once

#include <tenon/tensor.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "pool.hpp"
#include "profile.hpp"
#include "queue.hpp"
#include "vram.hpp"

// Every open gives a device of its own, as a driver gives a context.
struct tenon_device_s {
  uint32_t index = 0;
  reference::Vram vram;
  reference::Pool pool{vram};
  reference::Profile profile;

  std::mutex mutex;
  std::vector<std::shared_ptr<reference::Queue>> queues;  // of the streams alive
  std::map<const char*, uint64_t> pinned;                 // host memory that copies may use later
  std::map<const char*, uint64_t> imported;               // memory of other processes
};

struct tenon_graph_s {
  std::vector<reference::Task> tasks;
  std::vector<void*> kept;  // memory given back while recording; a replay uses it again
  reference::Pool* pool;
  ~tenon_graph_s() {
    for (void* memory : kept) pool->release(memory, {});
  }
};

struct tenon_stream_s {
  std::shared_ptr<reference::Queue> queue;
  std::unique_ptr<tenon_graph_s> recording;  // set while the stream is captured
};

namespace reference {

inline constexpr uint32_t kDevices = 2;

// Run `task` now (stream NULL), record it (stream captured), or queue it.
tenon_status enqueue(tenon_device device, tenon_stream stream, Task task, tenon_err* err);
// Wait for what is queued on one stream and report its failures. Refused while it is captured.
tenon_status wait_for(tenon_stream stream, tenon_err* err);
inline Ticket ticket_of(tenon_stream stream) {
  return stream ? Ticket{stream->queue, stream->queue->last()} : Ticket{};
}

// Refuses what is not memory of the device.
tenon_status check_range(tenon_device device, const void* memory, uint64_t bytes, const char* who,
                         tenon_err* err);
tenon_status report(const Result& result, tenon_err* err);

// The eight functions and the groups, by file.
tenon_status alloc(tenon_device, const tenon_alloc_request*, void** out, tenon_err*);
void release(tenon_device, void* memory, uint64_t bytes, tenon_stream);
tenon_status copy(tenon_device, const tenon_copy_request*, tenon_err*);
tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err*);
extern const tenon_async_api kAsync;
extern const tenon_pool_api kPool;
extern const tenon_graph_api kGraph;
extern const tenon_profile_api kProfile;
extern const tenon_collective_api kCollective;
extern const tenon_exchange_api kExchange;
extern const tenon_ipc_api kIpc;
extern const tenon_quiesce_api kQuiesce;
extern const tenon_compile_api kCompile;
extern const tenon_subgraph_api kSubgraph;
extern const tenon_device_api kDevice;
extern const tenon_plugin kPlugin;

}  // namespace reference
