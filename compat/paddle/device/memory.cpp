// SPDX-License-Identifier: Apache-2.0
// Memory and copies. Where the plugin lacks an optional function, a slower way is taken; nothing is
// skipped.
#include <algorithm>
#include <cstring>
#include <memory>

#include "device/plugin.hpp"

namespace tenon::paddle {
namespace {

size_t padded(const tenon_device_s& device, size_t bytes) {
  size_t total;
  if (__builtin_add_overflow(bytes, device.padding + device.chunk - 1, &total))
    throw Error(TENON_OUT_OF_MEMORY,
                device.plugin->kind() + ": out of memory: the request overflows");
  return total / device.chunk * device.chunk;
}

// What the plugin returned, in front of the pointer that the host got, if that had to be moved to
// be aligned. The host's own allocator asks for few, large pieces, so a table is cheap.
struct Piece {
  void* raw;
  size_t bytes;
  uint32_t kind;
};
std::mutex pieces_mutex;
std::unordered_map<void*, Piece>& pieces() {
  static auto* table =
      new std::unordered_map<void*, Piece>;  // outlives every static object that frees
  return *table;
}

void* allocate_raw(tenon_device device, uint32_t kind, size_t bytes) {
  void* memory = nullptr;
  const C_DeviceInterface& slots = device->plugin->slots();
  std::lock_guard lock(device->plugin->mutex());
  device->plugin->check(slots.set_device(&device->handle), "set_device");
  auto* function = kind == TENON_ALLOC_DEVICE   ? slots.device_memory_allocate
                   : kind == TENON_ALLOC_PINNED ? slots.host_memory_allocate
                                                : slots.unified_memory_allocate;
  const C_Status status = function(&device->handle, &memory, bytes);
  if ((status != C_SUCCESS && status != C_WARNING) || !memory)
    throw Error(TENON_OUT_OF_MEMORY, device->plugin->kind() +
                                         ": out of memory: " + std::to_string(bytes) +
                                         " bytes (status " + std::to_string(status) + ")");
  return memory;
}

void deallocate_raw(tenon_device device, uint32_t kind, void* memory, size_t bytes) {
  const C_DeviceInterface& slots = device->plugin->slots();
  std::lock_guard lock(device->plugin->mutex());
  device->plugin->check(slots.set_device(&device->handle), "set_device");
  auto* function = kind == TENON_ALLOC_DEVICE   ? slots.device_memory_deallocate
                   : kind == TENON_ALLOC_PINNED ? slots.host_memory_deallocate
                                                : slots.unified_memory_deallocate;
  device->plugin->check(function(&device->handle, memory, bytes), "memory_deallocate");
}

bool has_kind(const C_DeviceInterface& slots, uint32_t kind) {
  if (kind == TENON_ALLOC_PINNED) return slots.host_memory_allocate && slots.host_memory_deallocate;
  if (kind == TENON_ALLOC_MANAGED)
    return slots.unified_memory_allocate && slots.unified_memory_deallocate;
  return kind == TENON_ALLOC_DEVICE;
}

void through_host(tenon_device device, void* dst, const void* src, size_t bytes) {
  const auto buffer = std::make_unique_for_overwrite<char[]>(bytes);
  TENON_PADDLE_CALL(device, memory_copy_d2h, &device->handle, buffer.get(), src, bytes);
  TENON_PADDLE_CALL(device, memory_copy_h2d, &device->handle, dst, buffer.get(), bytes);
}

bool overlap(const void* a, const void* b, size_t bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + bytes && y < x + bytes;
}

}  // namespace

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  return guarded(err, [&] {
    if (!has_kind(device->plugin->slots(), request->kind))
      throw Error(TENON_UNSUPPORTED,
                  device->plugin->kind() + ": the plugin has no " +
                      (request->kind == TENON_ALLOC_PINNED ? "host_memory_allocate"
                                                           : "unified_memory_allocate"));
    size_t bytes = padded(*device, request->bytes);
    void* raw = allocate_raw(device, request->kind, bytes);
    auto address = reinterpret_cast<uintptr_t>(raw);
    if (address % request->align != 0) {
      deallocate_raw(device, request->kind, raw, bytes);
      bytes = padded(*device, bytes + request->align);
      raw = allocate_raw(device, request->kind, bytes);
      address =
          (reinterpret_cast<uintptr_t>(raw) + request->align - 1) & ~uintptr_t{request->align - 1};
    }
    *out = reinterpret_cast<void*>(address);
    std::lock_guard lock(pieces_mutex);
    pieces()[*out] = {raw, bytes, request->kind};
  });
}

void release(tenon_device device, void* memory, uint64_t, tenon_stream stream) {
  const tenon_status status = guarded(nullptr, [&] {
    Piece piece;
    {
      std::lock_guard lock(pieces_mutex);
      const auto found = pieces().find(memory);
      if (found == pieces().end()) return;
      piece = found->second;
      pieces().erase(found);
    }
    sync_stream(device, stream_of(device, stream));  // the plugin may free at once
    deallocate_raw(device, piece.kind, piece.raw, piece.bytes);
  });
  if (status != TENON_OK) {
    const std::string text = device->plugin->kind() + ": memory could not be freed";
    host->log(3, text.data(), text.size());
  }
}

void copy_memory(tenon_device device, int32_t direction, void* dst, const void* src, size_t bytes,
                 C_Stream stream) {
  if (bytes == 0) return;
  const C_DeviceInterface& slots = device->plugin->slots();
  if (direction == TENON_COPY_DEVICE_TO_DEVICE && !overlap(dst, src, bytes)) {
    if (stream && slots.async_memory_copy_d2d) {
      TENON_PADDLE_CALL(device, async_memory_copy_d2d, &device->handle, stream, dst, src, bytes);
      return;
    }
    sync_stream(device, stream);
    if (slots.memory_copy_d2d) {
      TENON_PADDLE_CALL(device, memory_copy_d2d, &device->handle, dst, src, bytes);
      return;
    }
  } else {
    sync_stream(device, stream);
  }
  // Host memory is pageable, so the copy must have finished anyway: after the stream, and at once.
  if (direction == TENON_COPY_HOST_TO_DEVICE)
    TENON_PADDLE_CALL(device, memory_copy_h2d, &device->handle, dst, src, bytes);
  else if (direction == TENON_COPY_DEVICE_TO_HOST)
    TENON_PADDLE_CALL(device, memory_copy_d2h, &device->handle, dst, src, bytes);
  else
    through_host(device, dst, src, bytes);
}

tenon_status copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  return guarded(err, [&] {
    copy_memory(device, request->direction, request->dst, request->src, request->bytes,
                stream_of(device, request->stream));
    finish_call(device, request->stream);
  });
}

tenon_status fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                  tenon_err* err) {
  return guarded(err, [&] {
    if (bytes == 0) return;
    char* at = static_cast<char*>(dst) + offset;
    const auto* first = static_cast<const unsigned char*>(pattern);
    sync_stream(device, stream_of(device, stream));
    const bool is_one_byte =
        std::all_of(first, first + pattern_bytes, [&](unsigned char b) { return b == *first; });
    if (is_one_byte && device->plugin->slots().device_memory_set) {
      TENON_PADDLE_CALL(device, device_memory_set, &device->handle, at, *first, bytes);
    } else {
      // 1 MiB is a multiple of every pattern's size.
      const size_t piece = std::min<uint64_t>(bytes, 1 << 20);
      const auto buffer = std::make_unique_for_overwrite<char[]>(piece);
      for (size_t i = 0; i < piece; i += pattern_bytes)
        std::memcpy(buffer.get() + i, pattern, pattern_bytes);
      for (uint64_t done = 0; done < bytes; done += piece)
        TENON_PADDLE_CALL(device, memory_copy_h2d, &device->handle, at + done, buffer.get(),
                          std::min<uint64_t>(piece, bytes - done));
    }
    finish_call(device, stream);
  });
}

}  // namespace tenon::paddle

void* tenon_device_s::allocate(size_t bytes) {
  return tenon::paddle::allocate_raw(this, TENON_ALLOC_DEVICE, tenon::paddle::padded(*this, bytes));
}

void tenon_device_s::deallocate(void* memory, size_t bytes, void* stream) noexcept {
  tenon::guarded(nullptr, [&] {
    tenon::paddle::sync_stream(this, static_cast<C_Stream>(stream));
    tenon::paddle::deallocate_raw(this, TENON_ALLOC_DEVICE, memory,
                                  tenon::paddle::padded(*this, bytes));
  });
}

void tenon_device_s::mark_unwritten(void* memory, size_t bytes, const void* like, size_t like_bytes,
                                    void* stream) {
  // All bits set is NaN in every floating dtype, and -1 or the largest number in the others.
  const std::vector<unsigned char> pattern(bytes, 0xff);
  const auto on_stream = static_cast<C_Stream>(stream);
  tenon::paddle::copy_memory(this, TENON_COPY_HOST_TO_DEVICE, memory, pattern.data(), bytes,
                             on_stream);
  if (like)
    tenon::paddle::copy_memory(this, TENON_COPY_DEVICE_TO_DEVICE, memory, like, like_bytes,
                               on_stream);
}
