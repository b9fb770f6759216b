// SPDX-License-Identifier: Apache-2.0
// One Kunlun chip, and what the files of the runtime share.
#pragma once

#include <tenon/aligned_memory.hpp>
#include <tenon/plugin.hpp>

#include <atomic>
#include <mutex>
#include <unordered_set>

#include "library/xpu.hpp"
#include "runtime/profile.hpp"

struct tenon_device_s {
  int index = 0;
  kunlun::Context* context = nullptr;  // of XDNN; made by the first call
  std::mutex mutex;                    // held while an operator runs
  tenon::AlignedMemory memory;
  std::mutex streams_mutex;
  std::unordered_set<tenon_stream> streams;  // all but the synchronous one
  kunlun::Profile profile;
};

struct tenon_stream_s {
  void* stream = nullptr;  // of XRE
};

namespace kunlun {

using tenon::host;

extern const tenon_device_api kDevice;  // without the group that XRE may lack
extern const tenon_async_api kAsync;
bool has_streams();

inline void* stream_of(tenon_stream stream) { return stream ? stream->stream : nullptr; }

// XRE has a current device for each thread. Every entry makes the one that it was given current.
tenon_status make_current(tenon_device device, tenon_err* err);

// Records "<function> returned <error> (<meaning>)" under the status that fits.
tenon_status fail_xpu(tenon_err* err, const char* function, int error);

// memory.cpp
tenon_status alloc(tenon_device, const tenon_alloc_request*, void** out, tenon_err*);
void release(tenon_device, void* memory, uint64_t bytes, tenon_stream);
tenon_status copy(tenon_device, const tenon_copy_request*, tenon_err*);
tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err*);

}  // namespace kunlun
