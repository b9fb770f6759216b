// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/device.hpp"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/runtime/device_check.hpp"
#include "kernel_core/runtime/fork.hpp"
#include "kernel_core/runtime/meta_device.hpp"

namespace tenon::core {

// 512 KB of which only the pages of kinds in use are ever touched: one load finds a device.
constinit std::atomic<Device*> device_table[1 << 16] = {};
constinit std::atomic<tenon_status (*)(const char*, tenon_err*)> device_kind_loader{nullptr};

namespace {

// A kind keeps its entry, its number and its Device objects when its plugin goes; all are reused if
// a plugin provides the same name again.
struct Kind {
  char name[17] = {};
  std::atomic<const tenon_device_api*> api{nullptr};  // NULL: removed
  const void* owner = nullptr;
  std::string origin;
  bool enumerated = false;
  std::vector<tenon_device_info> infos;
  std::vector<Device*> devices;  // by index; NULL: never opened
};

constinit std::atomic<Kind*> kinds[kMaxKinds] = {};
constinit std::atomic<uint32_t> kind_count{0};
constinit std::atomic<tenon_device_id> known_host{TENON_DEVICE_NONE};

// In a forked child: drivers do not survive it, host memory does.
void lose_devices() {
  uint32_t count = kind_count.load(std::memory_order_relaxed);
  for (uint32_t number = 1; number < count; ++number) {
    for (Device* device : kinds[number].load(std::memory_order_relaxed)->devices) {
      if (!device || !device->api || device->host_memory) continue;
      device->lost = true;
      device_table[device->id].store(nullptr, std::memory_order_relaxed);
    }
  }
}

// Recursive: a plugin may ask for devices while one of its own is being opened.
std::recursive_mutex& table_mutex() {
  static auto* mutex = [] {
    auto* fresh = new std::recursive_mutex;
    auto before = [](void* user) { static_cast<std::recursive_mutex*>(user)->lock(); };
    auto after = [](void* user, bool in_child) {
      if (!in_child) return static_cast<std::recursive_mutex*>(user)->unlock();
      lose_devices();
      new (user) std::recursive_mutex;  // the old one is owned by a thread of the parent
    };
    add_fork_handler({ForkOrder::kDevices, before, after, fresh});
    return fresh;
  }();
  return *mutex;
}
[[maybe_unused]] const auto& made_early = table_mutex();  // see fork.hpp
using Lock = std::lock_guard<std::recursive_mutex>;

Kind* new_kind(const tenon_device_api* api) {
  Kind* kind = new Kind;
  std::strncpy(kind->name, api->kind, sizeof kind->name - 1);
  kinds[kind_count.load(std::memory_order_relaxed)].store(kind, std::memory_order_release);
  kind_count.fetch_add(1, std::memory_order_release);
  return kind;
}

void ensure_meta() {
  if (kind_count.load(std::memory_order_acquire) > 0) return;
  Lock lock(table_mutex());
  if (kind_count.load(std::memory_order_relaxed) > 0) return;
  new_kind(&kMetaDevice)->api.store(&kMetaDevice, std::memory_order_release);
}

Kind* kind_at(uint32_t number) {
  ensure_meta();
  if (number >= kMaxKinds) return nullptr;
  return kinds[number].load(std::memory_order_acquire);
}

// The entry of a name, be its plugin there or not; -1: never seen.
int32_t find_entry(std::string_view name) {
  ensure_meta();
  uint32_t count = kind_count.load(std::memory_order_acquire);
  for (uint32_t number = 0; number < count; ++number)
    if (name == kinds[number].load(std::memory_order_acquire)->name)
      return static_cast<int32_t>(number);
  return -1;
}

bool is_live(const Kind* kind) { return kind && kind->api.load(std::memory_order_acquire); }

// With the lock held.
tenon_status ensure_enumerated(Kind& kind, tenon_err* err) {
  if (kind.enumerated) return TENON_OK;
  TENON_TRY(enumerate_devices(kind.api.load(std::memory_order_relaxed), &kind.infos, err));
  kind.devices.resize(std::max(kind.devices.size(), kind.infos.size()));
  kind.enumerated = true;
  return TENON_OK;
}

std::string known_kinds() {
  std::string text;
  for (uint32_t number = 0; Kind* kind = kind_at(number); ++number) {
    if (!is_live(kind)) continue;
    if (!text.empty()) text += ", ";
    text += kind->name;
  }
  return text;
}

// With the lock held; publishes the device.
tenon_status open_known(Kind& kind, tenon_device_id id, Device** out, tenon_err* err) {
  TENON_TRY(ensure_enumerated(kind, err));
  uint32_t index = TENON_DEVICE_INDEX(id);
  if (index >= kind.infos.size())
    return fail(err, TENON_NOT_FOUND, "%s has %zu device%s, there is no %s:%u", kind.name,
                kind.infos.size(), kind.infos.size() == 1 ? "" : "s", kind.name, index);
  const tenon_device_api* api = kind.api.load(std::memory_order_relaxed);
  Device*& device = kind.devices[index];
  if (!device) device = new Device;
  if (device->lost)
    return fail(err, TENON_UNAVAILABLE,
                "%s was opened before this process was forked and cannot be used in the child; "
                "start processes with spawn instead of fork, or open it in the child only",
                device->name);
  std::snprintf(device->name, sizeof device->name, "%s:%u", kind.name, index);
  tenon_device handle = nullptr;
  tenon_err local;
  if (!err) err = &local;
  TENON_TRY(device_result(*device, "open", api->open(index, &handle, err), err));
  if (!handle)
    return fail(err, TENON_INTERNAL,
                "%s > open: returned OK and no handle; this is a bug in the plugin", device->name);
  device->id = id;
  device->api = api;
  device->async = find_group(api, kDeviceGroups[TENON_GROUP_ASYNC]) ? api->async : nullptr;
  device->pool = find_group(api, kDeviceGroups[TENON_GROUP_POOL]) ? api->pool : nullptr;
  device->handle = handle;
  device->info = kind.infos[index];
  device->host_memory = device->info.flags & TENON_DEVICE_HOST_MEMORY;
  device->opaque_memory = device->info.flags & TENON_DEVICE_OPAQUE_MEMORY;
  if (DeviceResource* memory = device->memory.load(std::memory_order_relaxed)) memory->reopened();
  device_table[id].store(device, std::memory_order_release);
  *out = device;
  return TENON_OK;
}

std::string leases_of(const Kind& kind) {
  std::string text;
  for (Device* device : kind.devices) {
    if (!device) continue;
    std::string own;
    for (auto* slot : {&device->memory, &device->streams})
      if (DeviceResource* resource = slot->load(std::memory_order_acquire))
        resource->list_leases(own);
    for (uint32_t group = 0; group < TENON_GROUP_COUNT; ++group) {
      uint32_t borrowers = device->borrowers[group].load(std::memory_order_acquire);
      if (borrowers == 0) continue;
      own += std::string(own.empty() ? "" : ", ") + std::to_string(borrowers) + " user" +
             (borrowers == 1 ? "" : "s") + " of its `" + kDeviceGroups[group].name + "` group";
    }
    if (!own.empty()) text += std::string(text.empty() ? "" : "; ") + device->name + " has " + own;
  }
  return text;
}

void close_devices(Kind& kind) {
  for (Device* device : kind.devices) {
    if (!device || !device->api || device->lost) continue;
    for (auto* slot : {&device->memory, &device->streams})
      if (DeviceResource* resource = slot->load(std::memory_order_acquire)) resource->release_all();
    device->api->close(device->handle);
    device->api = nullptr;
    device->async = nullptr;
    device->pool = nullptr;
    device->handle = nullptr;
  }
}

constexpr uint64_t kQuiesceNanoseconds = 5'000'000'000;

// The last word of a plugin whose devices are closed: its threads stop. Without the lock, which
// they may be waiting for.
tenon_status quiesce(const char* kind, const tenon_device_api* api, tenon_err* err) {
  if (!find_group(api, kDeviceGroups[TENON_GROUP_QUIESCE])) return TENON_OK;
  tenon_err local;
  if (!err) err = &local;
  tenon_status status = api->quiesce->quiesce(kQuiesceNanoseconds, err);
  if (status == TENON_OK) return TENON_OK;
  fail(err, status, "its threads and callbacks did not come to rest within 5 s");
  add_context(err, "%s > quiesce", kind);
  return status;
}

}  // namespace

tenon_status device_result(const Device& device, const char* call, tenon_status status,
                           tenon_err* err) {
  if (status == TENON_OK) [[likely]]
    return TENON_OK;
  fail(err, status, "failed with code %d and no text", status);
  add_context(err, "%s > %s", device.name, call);
  return status;
}

tenon_status fail_unknown_kind(std::string_view name, tenon_err* err) {
  return fail(
      err, TENON_NOT_FOUND,
      "no device kind '%.*s'; known kinds: %s; load a plugin that provides it, or install a "
      "package with one: docs/support.md names those of Tenon",
      static_cast<int>(name.size()), name.data(), known_kinds().c_str());
}

int32_t find_device_kind(std::string_view name) {
  int32_t number = find_entry(name);
  return number >= 0 && is_live(kind_at(static_cast<uint32_t>(number))) ? number : -1;
}

tenon_status open_unopened_device(tenon_device_id id, Device** out, tenon_err* err) try {
  Kind* kind = kind_at(TENON_DEVICE_KIND(id));
  if (!is_live(kind))
    return fail(err, TENON_NOT_FOUND, "no device has the id %u; known kinds: %s", id,
                known_kinds().c_str());
  Lock lock(table_mutex());
  if (!is_live(kind)) return fail_unknown_kind(kind->name, err);
  if ((*out = device_table[id].load(std::memory_order_relaxed))) return TENON_OK;
  return open_known(*kind, id, out, err);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

std::string device_name(tenon_device_id id) {
  if (id == TENON_DEVICE_NONE) return "no device";
  Kind* kind = kind_at(TENON_DEVICE_KIND(id));
  std::string name = kind ? kind->name : "kind" + std::to_string(TENON_DEVICE_KIND(id));
  return name + ":" + std::to_string(TENON_DEVICE_INDEX(id));
}

tenon_status add_device_kind(const tenon_device_api* api, const void* owner, uint32_t* out,
                             tenon_err* err, const char* origin) try {
  TENON_TRY(check_device_api(api, err));
  ensure_meta();
  Lock lock(table_mutex());
  int32_t number = find_entry(api->kind);
  Kind* kind = number < 0 ? nullptr : kinds[number].load(std::memory_order_relaxed);
  if (is_live(kind)) {
    const char* holder = number == 0 ? "Tenon itself" : kind->origin.c_str();
    return fail(err, TENON_ALREADY_EXISTS,
                "device kind '%s' of %s is already provided by %s; unload one of the two",
                api->kind, *origin ? origin : "this plugin", *holder ? holder : "another plugin");
  }
  if (!kind) {
    number = static_cast<int32_t>(kind_count.load(std::memory_order_relaxed));
    if (number == static_cast<int32_t>(kMaxKinds))
      return fail(err, TENON_OUT_OF_RANGE, "expected at most %u device kinds; '%s' is one more",
                  kMaxKinds, api->kind);
    kind = new_kind(api);
  }
  kind->owner = owner;
  kind->origin = origin;
  kind->enumerated = false;
  kind->infos.clear();
  kind->api.store(api, std::memory_order_release);
  *out = static_cast<uint32_t>(number);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// Out of line, so that host_device needs no frame.
[[gnu::noinline]] static tenon_device_id find_host_device() try {
  Lock lock(table_mutex());
  for (uint32_t number = 1; Kind* kind = kind_at(number); ++number) {
    if (!is_live(kind) || ensure_enumerated(*kind, nullptr) != TENON_OK) continue;
    for (uint32_t index = 0; index < kind->infos.size(); ++index) {
      if (!(kind->infos[index].flags & TENON_DEVICE_HOST_MEMORY)) continue;
      known_host.store(TENON_DEVICE_ID(number, index), std::memory_order_release);
      return TENON_DEVICE_ID(number, index);
    }
  }
  return TENON_DEVICE_NONE;
} catch (const std::bad_alloc&) {
  return TENON_DEVICE_NONE;
}

tenon_device_id host_device() {
  tenon_device_id known = known_host.load(std::memory_order_acquire);
  return known != TENON_DEVICE_NONE ? known : find_host_device();
}

KindView view_device_kind(uint32_t number) {
  Kind* kind = kind_at(number);
  const tenon_device_api* api = kind ? kind->api.load(std::memory_order_acquire) : nullptr;
  if (!api) return {};
  bool takes_own_only = api->features & TENON_DEVICE_FEATURE_OWN_KERNELS_ONLY;
  return {kind->name, find_group(api, kDeviceGroups[TENON_GROUP_COMPILE]) != nullptr,
          takes_own_only ? kind->owner : nullptr};
}

tenon_status remove_device_kind(uint32_t number, tenon_err* err) try {
  if (number == 0) return fail(err, TENON_INVALID_ARGUMENT, "the kind 'meta' cannot be removed");
  std::unique_lock lock(table_mutex());
  Kind* kind = kind_at(number);
  if (!is_live(kind)) return fail(err, TENON_NOT_FOUND, "no device kind has the number %u", number);
  if (std::string leases = leases_of(*kind); !leases.empty())
    return fail(err, TENON_FAILED_PRECONDITION,
                "device kind '%s' is in use: %s; release them first", kind->name, leases.c_str());
  for (size_t index = 0; index < kind->devices.size(); ++index)
    device_table[TENON_DEVICE_ID(number, index)].store(nullptr, std::memory_order_release);
  if (TENON_DEVICE_KIND(known_host.load(std::memory_order_relaxed)) == number)
    known_host.store(TENON_DEVICE_NONE, std::memory_order_relaxed);
  close_devices(*kind);
  const tenon_device_api* api = kind->api.exchange(nullptr, std::memory_order_acq_rel);
  lock.unlock();
  tenon_status status = quiesce(kind->name, api, err);
  if (status == TENON_OK) return TENON_OK;
  // The kind stays; its devices are opened again when they are next used.
  lock.lock();
  kind->api.store(api, std::memory_order_release);
  return status;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

namespace slots {

uint32_t device_kind_count() {
  ensure_meta();
  return kind_count.load(std::memory_order_acquire);
}

const char* device_kind_name(uint32_t number) {
  Kind* kind = kind_at(number);
  return is_live(kind) ? kind->name : nullptr;
}

uint32_t device_count(uint32_t number) try {
  Lock lock(table_mutex());
  Kind* kind = kind_at(number);
  if (!is_live(kind) || ensure_enumerated(*kind, nullptr) != TENON_OK) return 0;
  return static_cast<uint32_t>(kind->infos.size());
} catch (const std::bad_alloc&) {
  return 0;
}

}  // namespace slots
}  // namespace tenon::core
