// SPDX-License-Identifier: Apache-2.0
// An open device.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/address_table.hpp"
#include "runtime/errors.hpp"
#include "runtime/kernel_names.hpp"
#include "runtime/profile.hpp"
#include "runtime/staging.hpp"
#include "runtime/stream.hpp"
#include "runtime/vendor.hpp"

namespace gpu {

inline constexpr uint32_t kMaxDevices = 256;  // indices of a kind have one byte

// What a library of kernels keeps for one device: handles, plans, programs. Destroyed with the device current.
class LibraryState {
 public:
  virtual ~LibraryState() = default;
};
enum LibraryKind {
  kBlasLibrary,
  kDnnLibrary,
  kFftLibrary,
  kSolverLibrary,
  kOwnKernels,
  kLibraryCount
};

}  // namespace gpu

struct tenon_device_s {
  tenon_device_s();
  ~tenon_device_s();

  // The state of a library on this device, which `make` makes at the first call.
  template <class State, class Make>
  State* library_state(gpu::LibraryKind kind, const Make& make) {
    std::call_once(library_once_[kind], [&] { libraries_[kind] = make(); });
    return static_cast<State*>(libraries_[kind].get());
  }

  int ordinal = 0;
  void* context = nullptr;  // CUDA's primary context, shared with every other library; HIP has none
  std::string name;
  std::string architecture;  // "sm_90"
  std::string identity;      // of device and driver: binaries are good for no other
  bool blocking = false;     // every launch is waited for, so that errors name their kernel

  tenon_stream_s synchronous;
  std::mutex streams_mutex;
  std::vector<tenon_stream_s*> streams;  // of the host

  gpu::AddressTable pinned;     // host memory given out: copies from and to it need not wait
  gpu::AddressTable allocated;  // device memory given out; its value is the driver's address
  gpu::Staging staging;
  gpu::Profile profile;
  gpu::KernelNames kernel_names;
  std::mutex peers_mutex;
  std::map<int, bool> peers;  // by ordinal, once requested: whether their memory is reached
  // The sticky error of this device, and the text of its first report.
  std::atomic<gpu::Error> lost{0};

 private:
  std::once_flag library_once_[gpu::kLibraryCount];
  std::unique_ptr<gpu::LibraryState> libraries_[gpu::kLibraryCount];
};

namespace gpu {

// Makes the device current on this thread for the length of a call, and restores what was: other
// libraries in the process have a current device too.
class Current {
 public:
  explicit Current(tenon_device device) : scope_(device->ordinal, device->context) {}

 private:
  vendor::CurrentScope scope_;
};

inline tenon_stream_s& stream_of(tenon_device device, tenon_stream stream) {
  return stream ? *stream : device->synchronous;
}

// Reports an error of the driver for work on `stream` (may be NULL); a sticky one marks the device as
// lost and names the kernel that was launched last.
[[gnu::format(printf, 5, 6)]] tenon_status fail_device(tenon_device device,
                                                       const tenon_stream_s* stream, Error error,
                                                       tenon_err* err, const char* format, ...);

int attribute(int ordinal, int number);

// The device that the host has opened under this index; NULL: none.
tenon_device open_device(uint32_t index);

tenon_status alloc(tenon_device, const tenon_alloc_request*, void** out, tenon_err*);
void release(tenon_device, void* memory, uint64_t bytes, tenon_stream);
tenon_status copy(tenon_device, const tenon_copy_request*, tenon_err*);
// TENON_COPY_PEER, between two addresses.
tenon_status copy_from_peer(tenon_device, const tenon_copy_request*, void* dst, const void* src,
                            tenon_err*);
tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err*);
tenon_status sync(tenon_device, tenon_stream, tenon_err*);

// Waits for all work queued so far, except on streams that are captured. The device is current.
void wait_for_streams(tenon_device device);

// The next wait for each stream that has unfinished work fails with TENON_ABORTED. The device is current.
void mark_busy_streams(tenon_device device);

extern const tenon_device_api kDevice;
extern const tenon_device_api kDeviceWithPool;
extern const tenon_async_api kAsync;
extern const tenon_pool_api kPool;
extern const tenon_graph_api kGraph;
extern const tenon_profile_api kProfile;
extern const tenon_collective_api kCollective;
extern const tenon_exchange_api kExchange;
extern const tenon_ipc_api kIpc;
extern const tenon_compile_api kCompile;

}  // namespace gpu
