// SPDX-License-Identifier: Apache-2.0
// One Ascend chip, and what the files of the runtime share.
#pragma once

#include <tenon/aligned_memory.hpp>
#include <tenon/plugin.hpp>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "library/executor.hpp"
#include "profile.hpp"

// `stream` is the synchronous stream of the ABI: what is queued there is waited for before the call returns.
struct tenon_device_s {
  int32_t index = 0;
  ascend::Stream stream = nullptr;
  std::mutex mutex;  // held from the first command of a call to the wait for the last one
  tenon::AlignedMemory memory;
  std::mutex streams_mutex;
  std::unordered_set<tenon_stream> streams;  // all but the synchronous one
  std::atomic<uint32_t> aborts{0};           // grows when work of streams is dropped
  ascend::Profile profile;
  std::mutex peers_mutex;
  std::map<int32_t, std::string> peers;  // by index: empty if copies from there work, else why not
  ascend::Executors executors;           // of the synchronous stream
};

struct tenon_stream_s {
  ascend::Stream stream = nullptr;
  std::atomic<bool> aborted{false};  // Note [Aborted communicators]; no wait has told it yet
  std::atomic<bool> capturing{false};
  std::vector<void*> captured_memory;  // pinned; becomes the graph's
  ascend::Executors executors;
};

namespace ascend {

using tenon::host;

extern const tenon_device_api kDevice;  // without the groups that CANN may lack

extern const tenon_async_api kAsync;
extern const tenon_collective_api kCollective;
extern const tenon_exchange_api kExchange;
void stop_collectives();  // once the devices are closed

extern const tenon_graph_api kGraph;
bool can_capture();  // this version of CANN records streams
// While the stream is captured: a copy of the host's memory that lives as long as what is captured.
tenon_status captured_host_memory(tenon_stream stream, const void* from, uint64_t bytes, void** out,
                                  tenon_err* err);

// Where work of `stream` is queued; NULL is the synchronous one.
inline Stream stream_of(tenon_device device, tenon_stream stream) {
  return stream ? stream->stream : device->stream;
}

// CANN has a current device for each thread. Every entry makes the one that it was given current.
tenon_status make_current(tenon_device device, tenon_err* err);

// Records "<function> returned <error> (<CANN's own message>)" under the status that fits.
tenon_status fail_acl(tenon_err* err, const char* function, int error);

// Drops the work of every stream of the device.
void abort_streams(tenon_device device);
// Fails if the stream was aborted since the last call of this.
tenon_status check_aborted(tenon_stream stream, tenon_err* err);

// Fails where the stream is captured and `what` would wait for it, or is not part of a recording.
inline tenon_status refuse_captured(tenon_stream stream, const char* what, tenon_err* err) {
  if (!stream || !stream->capturing) return TENON_OK;
  return tenon::fail(err, TENON_FAILED_PRECONDITION,
                     std::string("ascend: ") + what +
                         " while its stream is captured; do it before the capture or after it");
}

// memory.cpp
tenon_status alloc(tenon_device, const tenon_alloc_request*, void** out, tenon_err*);
void release(tenon_device, void* memory, uint64_t bytes, tenon_stream);
tenon_status copy(tenon_device, const tenon_copy_request*, tenon_err*);
// For the plugin's own host memory, which may end when the call does: a recording keeps a copy.
tenon_status copy_captured(tenon_device, const tenon_copy_request*, tenon_err*);
// TENON_COPY_PEER.
tenon_status copy_from_peer(tenon_device, const tenon_copy_request*, tenon_err*);
tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err*);

}  // namespace ascend
