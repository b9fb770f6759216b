// SPDX-License-Identifier: Apache-2.0
// Memory of the device, pinned memory of the host, and managed memory that both reach.
#include <algorithm>

#include "runtime/device.hpp"

namespace gpu {
namespace {

using ull = unsigned long long;

// What every allocation of the driver is aligned to.
constexpr uint64_t kDriverAlignment = 256;
// Larger pieces of memory are whole pages of the device, so that a handle for another process names
// them alone (the driver puts several small ones into one page and exports the page).
constexpr uint64_t kPage = uint64_t{2} << 20;

Error driver_alloc(uint32_t kind, void** out, uint64_t bytes) {
  switch (kind) {
    case TENON_ALLOC_PINNED:
      return driver.host_alloc(out, bytes, kHostPortable);
    case TENON_ALLOC_MANAGED:
      return driver.managed_alloc(out, bytes, kManagedGlobal);
    default:
      return driver.device_alloc(out, bytes);
  }
}

void driver_free(const AddressTable::Entry& entry) {
  if (entry.kind == TENON_ALLOC_PINNED)
    driver.host_free(entry.driver);
  else
    driver.device_free(entry.driver);
}

const char* kind_text(uint32_t kind) {
  return kind == TENON_ALLOC_PINNED ? " pinned" : kind == TENON_ALLOC_MANAGED ? " managed" : "";
}

AddressTable& table_of(tenon_device device, uint32_t kind) {
  return kind == TENON_ALLOC_PINNED ? device->pinned : device->allocated;
}

}  // namespace

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  const uint64_t align = request->align;
  if (request->bytes == 0 || align == 0 || (align & (align - 1))) {
    return fail(
        err, TENON_INVALID_ARGUMENT,
        "alloc: expected bytes > 0 and an alignment that is a power of two, got %llu and %llu",
        static_cast<ull>(request->bytes), static_cast<ull>(align));
  }
  if (request->kind > TENON_ALLOC_MANAGED) {
    return fail(err, TENON_UNSUPPORTED,
                "alloc: expected device (0), pinned (1) or managed (2) memory, got kind %u",
                request->kind);
  }
  uint64_t bytes = request->bytes + (align > kDriverAlignment ? align : 0);
  const bool is_device = request->kind == TENON_ALLOC_DEVICE;
  if (is_device && bytes >= request->bytes) bytes = (bytes + kPage - 1) & ~(kPage - 1);
  if (bytes < request->bytes)
    return fail(err, TENON_OUT_OF_MEMORY, "alloc %llu B%s: more than an address can count",
                static_cast<ull>(request->bytes), kind_text(request->kind));
  Current current(device);
  AddressTable::Entry entry = {nullptr, request->bytes, request->kind};
  if (Error error = driver_alloc(request->kind, &entry.driver, bytes)) {
    size_t free = 0, total = 0;
    driver.memory_info(&free, &total);
    return fail_device(device, nullptr, error, err, "alloc %llu B%s, %zu B of %zu B are free",
                       static_cast<ull>(request->bytes), kind_text(request->kind), free, total);
  }
  auto address = (reinterpret_cast<uintptr_t>(entry.driver) + align - 1) & ~(align - 1);
  if (!table_of(device, request->kind).insert(reinterpret_cast<void*>(address), entry)) {
    driver_free(entry);
    return fail_host_memory(err);
  }
  *out = reinterpret_cast<void*>(address);
  return TENON_OK;
}

// Work queued earlier on any stream may use the memory, and drivers differ in what their functions
// wait for; so everything is waited for. The host caches memory, so this is rare.
void release(tenon_device device, void* memory, uint64_t, tenon_stream) {
  Current current(device);
  AddressTable::Entry entry;
  if (!device->allocated.take(memory, &entry) && !device->pinned.take(memory, &entry)) return;
  wait_for_streams(device);
  driver_free(entry);
}

}  // namespace gpu
