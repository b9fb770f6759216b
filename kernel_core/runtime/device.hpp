// SPDX-License-Identifier: Apache-2.0
// The device table: kinds registered by plugins, devices opened on first use, found by id without a
// lock.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "kernel_core/types/status.hpp"

namespace tenon::core {

struct Device;

// What another room keeps for one device (its memory, its streams), for as long as the process
// lives. Asked before the device closes.
struct DeviceResource {
  // Append one line of text, "3 memory blocks, 4096 B", if a user still holds something.
  virtual void list_leases(std::string& text) = 0;
  // Nothing is held: give what is cached back to the plugin.
  virtual void release_all() = 0;
  // The device was closed and is open again, perhaps as one of other properties.
  virtual void reopened() {}
  // The stream is about to be destroyed; no reference to it may remain.
  virtual void forget_stream(tenon_stream) {}
};

// One opened device. Never moves and is never freed, so a pointer to it stays good for ever; after
// its kind was removed, `api` is NULL.
struct Device {
  tenon_device_id id = TENON_DEVICE_NONE;
  bool host_memory = false;              // TENON_DEVICE_HOST_MEMORY
  bool opaque_memory = false;            // TENON_DEVICE_OPAQUE_MEMORY
  bool lost = false;                     // opened before a fork of which this process is the child
  std::atomic<int8_t> cache_slot{0};     // its index in every thread's block caches; 0: none
  std::atomic<bool> has_streams{false};  // some thread has set a current stream
  std::atomic<uint32_t> recordings{0};   // streams whose memory is being noted (memory_hold_begin)
  const tenon_device_api* api = nullptr;
  const tenon_async_api* async = nullptr;  // NULL: synchronous stream only
  const tenon_pool_api* pool = nullptr;    // NULL: the host's cache serves
  tenon_device handle = nullptr;
  char name[24] = {};  // "acme:1"
  tenon_device_info info = {};
  std::atomic<DeviceResource*> memory{nullptr};
  std::atomic<DeviceResource*> streams{nullptr};
  std::atomic<uint32_t> borrowers[TENON_GROUP_COUNT] = {};  // of optional groups
};

inline constexpr uint32_t kMaxKinds = 255;  // kind 255 would make TENON_DEVICE_NONE a device
inline constexpr uint32_t kMaxDevicesPerKind = 256;

extern std::atomic<Device*> device_table[1 << 16];

// Slow half of the two below: opens a device that is known and not open yet.
tenon_status open_unopened_device(tenon_device_id id, Device** out, tenon_err* err);

// The device of an id; NULL if there is none or it cannot be opened (open_device says why).
inline Device* find_device(tenon_device_id id) {
  if (Device* device = device_table[id].load(std::memory_order_acquire)) return device;
  Device* opened = nullptr;
  open_unopened_device(id, &opened, nullptr);
  return opened;
}

inline tenon_status open_device(tenon_device_id id, Device** out, tenon_err* err) {
  *out = device_table[id].load(std::memory_order_acquire);
  return *out ? TENON_OK : open_unopened_device(id, out, err);
}

// -1: no plugin that is loaded provides it.
int32_t find_device_kind(std::string_view name);
tenon_status fail_unknown_kind(std::string_view name, tenon_err* err);

// First device whose memory is the host's own; TENON_DEVICE_NONE before one is known.
tenon_device_id host_device();

// "acme:1"; text for ids that name nothing too.
std::string device_name(tenon_device_id id);

// Checks the table and publishes it under its kind name. `owner` is whose kernels it takes if
// it takes no others'; `origin` ("acme 1.4.2 (/path/libacme.so)") appears in messages. The table
// must outlive the kind.
tenon_status add_device_kind(const tenon_device_api* api, const void* owner, uint32_t* kind,
                             tenon_err* err, const char* origin = "");
// What decides which kernels are for a kind.
struct KindView {
  std::string_view name;  // empty: there is no such kind
  bool compiles;          // it has the optional group `compile`
  const void* owner;      // only this plugin's kernels may run on it; NULL: those of all plugins
};
KindView view_device_kind(uint32_t kind);

// Closes the kind's devices and forgets its table; the number stays reserved for the name. Fails
// and lists what is alive if memory, streams or events of a device are, or if the plugin's own
// threads do not stop in time; the kind stays usable then. The caller has made sure that no call
// into the plugin is under way.
tenon_status remove_device_kind(uint32_t kind, tenon_err* err);

// Called for an unknown kind; may load a plugin that provides it. It returns TENON_NOT_FOUND
// without a text if no plugin provides it. The loader sets it.
extern std::atomic<tenon_status (*)(const char* kind, tenon_err*)> device_kind_loader;

// The outcome of a call into a plugin, with "acme:0 > alloc" in front of the text, and a text if
// the plugin gave none.
tenon_status device_result(const Device& device, const char* call, tenon_status status,
                           tenon_err* err);

}  // namespace tenon::core
