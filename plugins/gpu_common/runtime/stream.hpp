// SPDX-License-Identifier: Apache-2.0
// Streams of the driver, all of them non-blocking: the legacy default stream is never used, so other
// libraries' work on it and ours do not wait for one another.
//
// Note [The synchronous stream]
// The contract: a call with stream NULL has finished when it returns, as far as a later call can
// observe. Only the device itself reads its memory, so it is enough that
//   - copies to the host wait,
//   - work on another stream waits for what the synchronous stream had queued before,
//   - an event recorded on it is waited for when it is queried.
// Launches on it therefore return at once, and the device stays busy.
#pragma once

#include <atomic>
#include <mutex>

#include "runtime/errors.hpp"

struct tenon_stream_s {
  tenon_device device = nullptr;
  gpu::Stream stream = nullptr;
  bool is_synchronous = false;
  std::mutex mutex;               // of the two words that follow
  uint64_t synchronous_seen = 0;  // work of the synchronous stream that ours comes after
  bool capturing = false;
  std::atomic<bool> aborted{false};               // collective.cpp, Note [Aborted communicators]
  std::atomic<const char*> last_kernel{nullptr};  // a name that lives as long as the device
  // Synchronous stream only: work queued so far, and the event that follows all of it.
  std::atomic<uint64_t> submitted{0};
  gpu::Event marker = nullptr;
};

namespace gpu {

// Called with the device current before work is queued on a stream of the host: work of the
// synchronous stream comes first. Not during capture, whose beginning has waited for it.
Error follow_synchronous(tenon_stream_s& stream);

// Called after work was queued.
inline void submitted(tenon_stream_s& stream) {
  if (stream.is_synchronous) stream.submitted.fetch_add(1, std::memory_order_release);
}

// Waits for the stream. Returns error::kAborted, once, if a communicator was aborted meanwhile.
Error wait_for(tenon_stream_s& stream);

tenon_status create_stream(tenon_device device, tenon_stream_s& stream, int priority,
                           tenon_err* err);
void destroy_stream(tenon_stream_s& stream);  // waits

}  // namespace gpu
