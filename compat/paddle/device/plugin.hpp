// SPDX-License-Identifier: Apache-2.0
// A loaded device plugin: its interface, its devices, and the tables that it gives to the host.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "capi/objects.hpp"
#include "device/interface.hpp"
#include "device/kernel_table.hpp"
#include "formats/json_writer.hpp"

namespace tenon::paddle {
class DevicePlugin;
}

// One device. Memory of kernels' temporary tensors comes from it too.
struct tenon_device_s final : tenon::paddle::MemorySource {
  tenon::paddle::DevicePlugin* plugin = nullptr;
  uint32_t index = 0;
  C_Device_st handle = {0};
  bool is_initialized = false;
  // For calls without a stream: kernels may use the stream of their context. NULL: the plugin has
  // none.
  C_Stream own_stream = nullptr;
  size_t chunk = 1, padding = 0;

  void* allocate(size_t bytes) override;
  void deallocate(void* memory, size_t bytes, void* stream) noexcept override;
  void mark_unwritten(void* memory, size_t bytes, const void* like, size_t like_bytes,
                      void* stream) override;
};

namespace tenon::paddle {

class DevicePlugin {
 public:
  explicit DevicePlugin(FilledInterface filled, std::string path,
                        std::vector<Registration> registrations);

  // initialize, the list of devices, whether there are streams. Throws.
  void start();
  // Publishes the tables. Throws.
  void attach(uint32_t slot);

  const std::string& kind() const { return filled_.device_type; }
  const std::string& path() const { return path_; }
  const C_DeviceInterface& slots() const { return filled_.slots; }
  const BoundKernel* kernel_for(const tenon_op* op, int32_t dtype) const;
  void describe(JsonWriter& json) const;

  // What tells one plugin's functions from another's: see slots.cpp.
  tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count,
                         tenon_err* err);
  tenon_status open(uint32_t index, tenon_device* out, tenon_err* err);

  // Every call into the plugin is made under this: "the current device" may be one for the process.
  std::recursive_mutex& mutex() { return mutex_; }
  // Throws what `status` of `function` says; a warning is logged once.
  void check(C_Status status, const char* function);

 private:
  friend void fill_slot_functions(DevicePlugin&, uint32_t slot);
  void initialize_device(tenon_device_s& device);
  bool probe_streams(tenon_device_s& device);

  FilledInterface filled_;
  std::string path_;
  std::vector<Registration> registrations_;
  KernelBindings bindings_;
  std::vector<tenon_device_s> devices_;
  bool has_streams_ = false;
  std::recursive_mutex mutex_;
  std::set<std::string> warned_;
  std::unordered_map<const tenon_op*, const OperatorBinding*> by_operator_;

  std::string name_, vendor_;
  tenon_device_api device_api_ = {};
  tenon_plugin table_ = {};
};

inline constexpr uint32_t kMaxPlugins = 16;

// Calls a slot with the device current, under the plugin's lock; throws.
#define TENON_PADDLE_CALL(device, function, ...)                                         \
  do {                                                                                   \
    std::lock_guard paddle_lock((device)->plugin->mutex());                              \
    (device)->plugin->check((device)->plugin->slots().set_device(&(device)->handle),     \
                            "set_device");                                               \
    (device)->plugin->check((device)->plugin->slots().function(__VA_ARGS__), #function); \
  } while (0)

// device.cpp, memory.cpp, stream.cpp: the functions of the device table.
void sync_stream(tenon_device device, C_Stream stream);  // throws; NULL: the whole device
C_Stream stream_of(tenon_device device, tenon_stream stream);
// A call whose stream was NULL has finished when it returns.
void finish_call(tenon_device device, tenon_stream stream);
tenon_status alloc(tenon_device, const tenon_alloc_request*, void** out, tenon_err*);
void release(tenon_device, void* memory, uint64_t bytes, tenon_stream);
tenon_status copy(tenon_device, const tenon_copy_request*, tenon_err*);
tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err*);
void copy_memory(tenon_device device, int32_t direction, void* dst, const void* src, size_t bytes,
                 C_Stream stream);
tenon_status sync(tenon_device, tenon_stream, tenon_err*);
extern const tenon_async_api kAsync;

// run.cpp
tenon_status run_kernel(tenon_ctx*, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                        uint32_t nouts, tenon_err*);

}  // namespace tenon::paddle
