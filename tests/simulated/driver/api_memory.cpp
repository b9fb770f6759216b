// SPDX-License-Identifier: Apache-2.0
// Memory, copies, fills, pools, and memory shared between processes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "handles.hpp"
#include "trace.hpp"

namespace simulated {
namespace {

// Of device memory that another process exports: the file behind it, and where in it.
struct Export {
  char magic[8];
  int32_t process, file;
  uint64_t inode, offset, bytes;
};
constexpr char kMagic[8] = {'s', 'i', 'm', 'm', 'e', 'm', '0', '1'};
static_assert(sizeof(Export) <= sizeof(IpcHandle));

std::string path_of(const Export& exported) {
  return "/proc/" + std::to_string(exported.process) + "/fd/" + std::to_string(exported.file);
}

// Both ranges are checked when the call is made, and found again when the copy runs: what was
// freed in between is not there any more.
Error copy(void* dst, const void* src, uint64_t bytes, bool dst_is_ours, bool src_is_ours,
           Stream& stream, int kind = kSimulatedCopy) {
  if (bytes == 0) return error::SUCCESS;
  if (!dst || !src) return error::INVALID_VALUE;
  if (dst_is_ours ? !access(dst, bytes) : device_of(dst) != nullptr) return error::INVALID_VALUE;
  if (src_is_ours ? !access(src, bytes) : device_of(src) != nullptr) return error::INVALID_VALUE;
  return stream.submit(traced(stream, kind, "", bytes, [=]() -> Error {
    char* to = dst_is_ours ? access(dst, bytes) : static_cast<char*>(dst);
    const char* from = src_is_ours ? access(src, bytes) : static_cast<const char*>(src);
    if (!to || !from) return error::ILLEGAL_ADDRESS;
    const bool overlap = to < from + bytes && from < to + bytes;
    if (overlap && to != from)
      std::memset(to, 0xff, bytes);  // the result is undefined: it is never the right one
    else if (to != from)
      std::memcpy(to, from, bytes);
    return error::SUCCESS;
  }));
}

template <class T>
Error fill(void* dst, T value, uint64_t count, StreamHandle handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  const uint64_t bytes = count * sizeof(T);
  if (count == 0) return error::SUCCESS;
  if (reinterpret_cast<uintptr_t>(dst) % sizeof(T) || !access(dst, bytes))
    return error::INVALID_VALUE;
  return stream->submit(traced(*stream, kSimulatedFill, "", bytes, [=]() -> Error {
    auto* to = reinterpret_cast<T*>(access(dst, bytes));
    if (!to) return error::ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < count; ++i) to[i] = value;
    return error::SUCCESS;
  }));
}

Error copy_now(void* dst, const void* src, size_t bytes, bool dst_is_ours, bool src_is_ours) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(nullptr, &stream));
  TRY(refuse_global_captures());
  TRY(copy(dst, src, bytes, dst_is_ours, src_is_ours, *stream));
  stream->tail().wait();
  return stream->device.lost();
}

}  // namespace

Error copy_peer(void* dst, const Device& to, const void* src, const Device& from, size_t bytes,
                StreamHandle handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  TRY(to.lost());
  TRY(from.lost());
  if (device_of(dst) != &to || device_of(src) != &from) return error::INVALID_VALUE;
  return copy(dst, src, bytes, true, true, *stream, kSimulatedPeerCopy);
}

namespace api {

Error memory_info(size_t* free, size_t* total) {
  Device* device;
  TRY(current_device(&device));
  if (total) *total = device->memory.bytes();
  if (free) *free = device->memory.bytes() - device->memory.used();
  return error::SUCCESS;
}

Error device_alloc(void** out, size_t bytes) {
  Device* device;
  TRY(current_device(&device));
  TRY(refuse_global_captures());
  if (!out) return error::INVALID_VALUE;
  if (bytes == 0) {  // HIP gives NULL, CUDA refuses
    *out = nullptr;
    return SIMULATED_HIP ? error::SUCCESS : error::INVALID_VALUE;
  }
  return device->allocate(bytes, out);
}

// Frees managed memory as well, and memory of the pool.
Error device_free(void* memory) {
  if (!memory) return error::SUCCESS;
  TRY(refuse_global_captures());
  if (host_memory().contains(memory)) {
    for (Device* device : devices()) device->wait_for_all();
    return host_memory().release(memory) ? error::SUCCESS : error::INVALID_VALUE;
  }
  Device* device = device_of(memory);
  if (!device) return error::INVALID_VALUE;
  TRY(device->lost());
  if (!device->pool.owns(memory)) return device->release(memory);
  device->wait_for_all();
  return device->pool.release(memory, *device->default_stream());
}

Error host_alloc(void** out, size_t bytes, unsigned) {
  Device* device;
  TRY(current_device(&device));
  if (!out) return error::INVALID_VALUE;
  *out = bytes ? host_memory().allocate(bytes) : nullptr;
  return *out || bytes == 0 ? error::SUCCESS : error::OUT_OF_MEMORY;
}

Error host_free(void* memory) {
  if (!memory) return error::SUCCESS;
  for (Device* device : devices()) device->wait_for_all();
  return host_memory().release(memory) ? error::SUCCESS : error::INVALID_VALUE;
}

Error managed_alloc(void** out, size_t bytes, unsigned flags) {
  if (flags != 1 && flags != 2) return error::INVALID_VALUE;
  return host_alloc(out, bytes, 0);
}

Error address_range(void** base, size_t* bytes, void* memory) {
  Device* device = device_of(memory);
  const Arena& arena = device ? device->memory : host_memory();
  void* found;
  uint64_t size;
  if (!arena.find(memory, &found, &size)) return error::NOT_FOUND;
  if (base) *base = found;
  if (bytes) *bytes = size;
  return error::SUCCESS;
}

Error copy_to_device(void* dst, const void* src, size_t bytes, StreamHandle handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  return copy(dst, src, bytes, true, false, *stream);
}

Error copy_to_host(void* dst, const void* src, size_t bytes, StreamHandle handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  return copy(dst, src, bytes, false, true, *stream);
}

Error copy_on_device(void* dst, const void* src, size_t bytes, StreamHandle handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  return copy(dst, src, bytes, true, true, *stream);
}

Error copy_to_device_now(void* dst, const void* src, size_t bytes) {
  return copy_now(dst, src, bytes, true, false);
}

Error copy_to_host_now(void* dst, const void* src, size_t bytes) {
  return copy_now(dst, src, bytes, false, true);
}

Error copy_on_device_now(void* dst, const void* src, size_t bytes) {
  return copy_now(dst, src, bytes, true, true);
}

Error fill8(void* dst, unsigned char value, size_t count, StreamHandle stream) {
  return fill(dst, value, count, stream);
}

Error fill16(void* dst, unsigned short value, size_t count, StreamHandle stream) {
  return fill(dst, value, count, stream);
}

Error fill32(void* dst, unsigned value, size_t count, StreamHandle stream) {
  return fill(dst, value, count, stream);
}

// ---- pools ----

Error pool_of_device(PoolHandle* out, int device) {
  if (device < 0 || device >= static_cast<int>(devices().size())) return error::INVALID_DEVICE;
  *out = &devices()[static_cast<size_t>(device)]->pool;
  return error::SUCCESS;
}

static Pool* find_pool(PoolHandle handle) {
  for (Device* device : devices())
    if (&device->pool == handle) return &device->pool;
  return nullptr;
}

enum PoolAttribute {
  kReleaseThreshold = 4,
  kReserved = 5,
  kReservedHigh = 6,
  kUsed = 7,
  kUsedHigh = 8
};

Error pool_set(PoolHandle handle, int attribute, void* value) {
  Pool* pool = find_pool(handle);
  if (!pool) return error::INVALID_VALUE;
  if (attribute == kReleaseThreshold) std::memcpy(&pool->release_threshold, value, 8);
  return error::SUCCESS;
}

Error pool_get(PoolHandle handle, int attribute, void* value) {
  Pool* pool = find_pool(handle);
  uint64_t number;
  if (!pool) return error::INVALID_VALUE;
  switch (attribute) {
    case kReleaseThreshold:
      number = pool->release_threshold;
      break;
    case kReserved:
    case kReservedHigh:
      number = pool->reserved();
      break;
    case kUsed:
    case kUsedHigh:
      number = pool->used();
      break;
    default:
      return error::INVALID_VALUE;
  }
  std::memcpy(value, &number, sizeof number);
  return error::SUCCESS;
}

Error pool_trim(PoolHandle handle, size_t keep) {
  Pool* pool = find_pool(handle);
  return pool ? pool->trim(keep) : error::INVALID_VALUE;
}

Error pool_alloc(void** out, size_t bytes, StreamHandle handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  return out ? stream->device.pool.allocate(bytes, *stream, out) : error::INVALID_VALUE;
}

Error pool_free(void* memory, StreamHandle handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  return stream->device.pool.release(memory, *stream);
}

// ---- other processes ----

Error ipc_export(IpcHandle* out, void* memory) {
  Device* device = device_of(memory);
  if (!device) return error::INVALID_VALUE;
  TRY(device->lost());
  void* base;
  Export exported = {};
  std::memcpy(exported.magic, kMagic, sizeof kMagic);
  if (!device->memory.find(memory, &base, &exported.bytes)) return error::INVALID_VALUE;
  exported.offset = device->memory.offset_of(base);
  if (exported.offset >= device->memory.bytes()) return error::INVALID_VALUE;  // it is imported
  struct stat about;
  if (fstat(device->memory.file(), &about)) return error::OPERATING_SYSTEM;
  exported.process = getpid();
  exported.file = device->memory.file();
  exported.inode = about.st_ino;
  *out = {};
  std::memcpy(out->bytes, &exported, sizeof exported);
  return error::SUCCESS;
}

Error ipc_open(void** out, IpcHandle handle, unsigned) {
  Device* device;
  TRY(current_device(&device));
  Export exported;
  std::memcpy(&exported, handle.bytes, sizeof exported);
  if (std::memcmp(exported.magic, kMagic, sizeof kMagic) != 0) return error::INVALID_VALUE;
  if (exported.process == getpid()) return error::INVALID_CONTEXT;
  const std::string path = path_of(exported);
  char target[64] = {};
  if (readlink(path.c_str(), target, sizeof target - 1) < 0 ||
      !std::string_view(target).starts_with("/memfd:simulated-memory"))
    return error::INVALID_VALUE;
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return error::MAP_FAILED;
  struct stat about;
  const bool same = fstat(file, &about) == 0 && about.st_ino == exported.inode;
  *out = same ? device->memory.import(file, exported.offset, exported.bytes) : nullptr;
  close(file);
  if (!*out) return error::MAP_FAILED;
  DeviceProcess* process;
  Error error = device->process(&process);
  if (!error) error = process->import(*out, path, exported.offset, exported.bytes);
  if (error) device->memory.close_import(*out);
  return error;
}

Error ipc_close(void* memory) {
  Device* device = device_of(memory);
  if (!device) return error::INVALID_VALUE;
  device->wait_for_all();
  void* base;
  uint64_t bytes;
  if (!device->memory.find(memory, &base, &bytes)) return error::INVALID_VALUE;
  DeviceProcess* process;
  TRY(device->process(&process));
  TRY(process->unmap(base, bytes));
  return device->memory.close_import(memory) ? error::SUCCESS : error::INVALID_VALUE;
}

}  // namespace api
}  // namespace simulated

// For the other libraries of the simulator, which work on the host: where memory of a device is.
SIMULATED_EXPORT void* simulated_access(const void* memory, size_t bytes) {
  return simulated::access(memory, bytes);
}

// For the other libraries of the simulator: queues a function of the host, which also becomes part
// of graphs, and destroys its argument when the last of them does not need it any more.
SIMULATED_EXPORT int simulated_enqueue(void* handle, void (*call)(void*), void* user,
                                       void (*destroy)(void*)) {
  using namespace simulated;
  std::shared_ptr<void> argument(user, destroy);
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  trace_call();  // what the library would launch
  return stream->submit(
      traced(*stream, kSimulatedKernel, "simulated_library_kernel", 0, [argument, call]() -> Error {
        call(argument.get());
        return error::SUCCESS;
      }));
}
