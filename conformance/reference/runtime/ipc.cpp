// SPDX-License-Identifier: Apache-2.0
// Memory shared with other processes: the handle says which part of which file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "device.hpp"
#include "memory_file.hpp"

namespace reference {
namespace {

constexpr uint64_t kMagic = 0x3163706965666572;  // "refeipc1"
constexpr uint64_t kPage = 4096;

struct Handle {
  uint64_t magic;
  MemoryFile file;
  uint64_t offset, bytes;
};
static_assert(sizeof(Handle) <= sizeof(tenon_ipc_handle));

tenon_status ipc_export(tenon_device device, void* memory, uint64_t bytes, tenon_ipc_handle* out,
                        tenon_err* err) {
  const uint64_t size = device->vram.size_from(memory);
  if (size == 0 || bytes == 0 || bytes > size)
    return tenon::fail(
        err, TENON_INVALID_ARGUMENT,
        "reference: ipc_export: expected memory from alloc or pool_alloc and at most its size");
  Handle handle = {.magic = kMagic, .offset = device->vram.offset_of(memory), .bytes = bytes};
  if (!name_memory_file(device->vram.file(), &handle.file))
    return tenon::fail(err, TENON_INTERNAL,
                       "reference: ipc_export: the board's memory file is gone");
  *out = {};
  std::memcpy(out->bytes, &handle, sizeof handle);
  return TENON_OK;
}

tenon_status ipc_open(tenon_device device, const tenon_ipc_handle* from, void** out,
                      uint64_t* bytes, tenon_err* err) {
  Handle handle;
  std::memcpy(&handle, from->bytes, sizeof handle);
  if (handle.magic != kMagic)
    return tenon::fail(
        err, TENON_INVALID_ARGUMENT,
        "reference: ipc_open: expected a handle that ipc_export of this plugin has made");
  uint64_t size = 0;
  const int file = open_memory_file(handle.file, &size);
  if (file < 0)
    return tenon::fail(
        err, TENON_NOT_FOUND,
        "reference: ipc_open: the exporting process has ended, closed its device, or belongs to "
        "another user");
  void* memory = MAP_FAILED;
  const uint64_t skip = handle.offset % kPage;
  if (handle.bytes > 0 && handle.offset <= size && handle.bytes <= size - handle.offset)
    memory = mmap(nullptr, skip + handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                  static_cast<off_t>(handle.offset - skip));
  close(file);
  if (memory == MAP_FAILED)
    return tenon::fail(err, TENON_INVALID_ARGUMENT, "reference: ipc_open: the handle is damaged");
  char* at = static_cast<char*>(memory) + skip;
  std::lock_guard lock(device->mutex);
  device->imported[at] = handle.bytes;
  *out = at;
  *bytes = handle.bytes;
  return TENON_OK;
}

void ipc_close(tenon_device device, void* memory) {
  std::lock_guard lock(device->mutex);
  auto it = device->imported.find(static_cast<const char*>(memory));
  if (it == device->imported.end()) return;
  const uint64_t skip = reinterpret_cast<uintptr_t>(memory) % kPage;
  munmap(static_cast<char*>(memory) - skip, skip + it->second);
  device->imported.erase(it);
}

}  // namespace

const tenon_ipc_api kIpc = {
    .struct_size = sizeof(tenon_ipc_api),
    .ipc_export = ipc_export,
    .ipc_open = ipc_open,
    .ipc_close = ipc_close,
};

}  // namespace reference
