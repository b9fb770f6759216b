// SPDX-License-Identifier: Apache-2.0
// A device that compiles source: its `compile` group, borrowed at the first kernel call on it, and
// the programs made for it so far.
#pragma once

#include <tenon/tensor.hpp>

#include <atomic>
#include <mutex>
#include <string>

namespace tenon::kernel_c {

// A program is one kernel, compiled when it is first launched. `family` is the address of what
// describes the kernel, `variant` the choices made in its source: dtypes, layout, rank.
struct ProgramKey {
  const void* family;
  uint64_t variant;
  bool operator==(const ProgramKey&) const = default;
};

// What must be compiled.
struct Source {
  std::string name, text;
};
// The program's kernel. Its own prefix keeps it apart from what a compiler has built in.
inline std::string kernel_name(const std::string& program) { return "tenon_" + program; }

class Device {
 public:
  Device(tenon_device_id id, tenon_device handle, const tenon_compile_api* api)
      : id(id), handle(handle), api(api) {}
  Device(const Device&) = delete;
  ~Device();  // waits for nothing: programs may be destroyed while launches are queued

  bool host_like() const { return limits.flags & TENON_COMPILE_HOST_LIKE; }
  bool has(int dtype) const { return limits.dtype_mask >> dtype & 1; }

  // The kernel for `key`; `make()` returns its Source and is called at the first use only.
  template <class Make>
  tenon_status kernel(const ProgramKey& key, const Make& make, tenon_kernel* out, tenon_err* err) {
    if (const Program* program = find(key)) {
      *out = program->kernel;
      return TENON_OK;
    }
    return compile(
        key, [](const void* user) { return (*static_cast<const Make*>(user))(); }, &make, out, err);
  }

  const tenon_device_id id;
  const tenon_device handle;
  const tenon_compile_api* const api;
  tenon_compile_limits limits = {};
  bool opaque_memory = false;

 private:
  struct Program {
    ProgramKey key;
    tenon_program program;
    tenon_kernel kernel;
    Program* next;
  };
  static constexpr size_t kBuckets = 1024;

  std::atomic<Program*>& bucket(const ProgramKey& key);
  const Program* find(const ProgramKey& key);
  tenon_status compile(const ProgramKey& key, Source (*make)(const void*), const void* user,
                       tenon_kernel* out, tenon_err* err);

  // Lists that only grow, so that they are read without a lock.
  std::atomic<Program*> buckets_[kBuckets] = {};
  std::mutex compiling_;
};

// The device that a tensor is on.
tenon_status device_of(const tenon_tensor* tensor, Device** out, tenon_err* err);

// Destroys all programs and returns all leases. No kernel runs any more.
void close_devices();

}  // namespace tenon::kernel_c
