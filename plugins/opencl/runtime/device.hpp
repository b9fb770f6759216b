// SPDX-License-Identifier: Apache-2.0
// An open device.
#pragma once

#include <string>
#include <vector>

#include "address_space.hpp"
#include "pinned.hpp"
#include "profile.hpp"
#include "stream.hpp"

struct tenon_device_s {
  ~tenon_device_s();

  cl_device_id id = nullptr;
  cl_context context = nullptr;
  uint64_t memory_bytes = 0;
  uint64_t buffer_bytes = 0;  // the largest buffer
  bool has_float64 = false;
  bool is_processor = false;
  std::string build_options;
  std::string identity;  // of device and driver; binaries are good for no other

  opencl::AddressSpace addresses;
  std::atomic<uint64_t> allocated{0};
  opencl::PinnedTable pinned;

  tenon_stream_s synchronous;
  tenon_stream_s service;  // ours: nothing queued there waits for the caller's work
  std::mutex streams_mutex;
  std::vector<tenon_stream_s*> streams;  // of the host
  opencl::Profile profile;
};

namespace opencl {

inline tenon_stream_s& stream_of(tenon_device device, tenon_stream stream) {
  return stream ? *stream : device->synchronous;
}

template <class T>
T device_value(cl_device_id device, cl_device_info what) {
  T value = {};
  cl.GetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}
std::string device_text(cl_device_id device, cl_device_info what);
std::string platform_text(cl_platform_id platform, cl_platform_info what);

tenon_status alloc(tenon_device, const tenon_alloc_request*, void** out, tenon_err*);
void release(tenon_device, void* memory, uint64_t bytes, tenon_stream);
tenon_status copy(tenon_device, const tenon_copy_request*, tenon_err*);
tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err*);

// Where an address leads: `bytes` from there lie inside one buffer.
struct Place {
  cl_mem memory;
  uint64_t offset;
};
tenon_status locate(tenon_device device, const void* address, uint64_t offset, uint64_t bytes,
                    const char* what, Place* out, tenon_err* err);

extern const tenon_device_api kDevice;
extern const tenon_compile_api kCompile;

}  // namespace opencl
