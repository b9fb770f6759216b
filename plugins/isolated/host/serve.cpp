// SPDX-License-Identifier: Apache-2.0
// Requests of one lane, one after the other; and those about memory.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <tenon/tensor.hpp>

#include "host/commands.hpp"
#include "wire/stream_copy.hpp"

namespace tenon::isolated {
namespace {

// A request may depend on work that another lane has finished. The client orders the two in its own
// process, where ThreadSanitizer does not see it; this fence makes the order visible.
void follow_other_lanes() {
#ifdef __SANITIZE_THREAD__
  static std::atomic<uint32_t> turns{0};
  turns.fetch_add(1, std::memory_order_acq_rel);
#endif
}

}  // namespace

Server::Server(Vendor& vendor, Lane& lane, Patience patience)
    : vendor_(vendor), lane_(lane), patience_(patience), err_(host->err_create()) {}

Server::~Server() {
  drop_results();
  host->err_destroy(err_);
}

void Server::serve(void (*on_loaded)()) {
  for (uint32_t answered = 0;;) {
    wait_for_change(lane_.asked, lane_.process_sleeps, answered, patience_, 0);
    const uint32_t asked = lane_.asked.load(std::memory_order_acquire);
    follow_other_lanes();
    const Command command = lane_.command;
    Reader in(lane_.message, std::min<uint64_t>(lane_.message_bytes, kMessageBytes));
    Writer out(lane_.message, kMessageBytes);
    host->err_clear(err_);
    const tenon_status status = run(command, in, out);
    if (status != TENON_OK) {
      out = Writer(lane_.message, kMessageBytes);
      std::string_view text = host->err_text(err_);
      out.put_text(text.substr(0, kMessageBytes / 2));
    } else if (command == Command::kLoad) {
      on_loaded();
    }
    lane_.status = status;
    lane_.message_bytes = out.bytes();
    answered = asked;
    follow_other_lanes();
    change(lane_.answered, lane_.program_sleeps, answered);
    if (command == Command::kStop) _exit(0);
  }
}

tenon_status Server::run(Command command, Reader& in, Writer& out) {
  switch (command) {
    case Command::kLoad:
      return load(in, out);
    case Command::kOpen:
      return vendor_.open(in.get<uint32_t>(), err_);
    case Command::kAlloc:
      return alloc(in, out);
    case Command::kFree:
      return free(in);
    case Command::kCopyIn:
      return copy_staged(in, TENON_COPY_HOST_TO_DEVICE);
    case Command::kCopyOut:
      return copy_staged(in, TENON_COPY_DEVICE_TO_HOST);
    case Command::kCopyOn:
      return copy_on(in);
    case Command::kFill:
      return fill(in);
    case Command::kSync:
      return sync(in);
    case Command::kCanRun:
      return can_run(in, out);
    case Command::kCall:
      return call(in, out);
    case Command::kCollect:
      return collect(in);
    case Command::kStop:
      return vendor_.unload(err_);
  }
  return fail(err_, TENON_UNSUPPORTED,
              "tenon-plugin-host does not know this command; is it of another version?");
}

tenon_status Server::load(Reader& in, Writer& out) {
  const std::string path(in.get_text()), folders(in.get_text());
  return vendor_.load(path, folders, out, err_);
}

tenon_status Server::alloc(Reader& in, Writer& out) {
  const OpenDevice* device = vendor_.find(in.get<uint32_t>(), err_);
  if (!device) return TENON_INTERNAL;
  tenon_alloc_request request = {};
  request.struct_size = sizeof request;
  request.kind = TENON_ALLOC_DEVICE;
  request.bytes = in.get<uint64_t>();
  request.align = in.get<uint64_t>();
  void* memory = nullptr;
  // With a pool of its own, the plugin's alloc is for other kinds of memory.
  const tenon_status status =
      vendor_.pool() ? vendor_.pool()->pool_alloc(device->handle, &request, &memory, err_)
                     : vendor_.api().alloc(device->handle, &request, &memory, err_);
  if (status == TENON_OK) out.put(reinterpret_cast<uint64_t>(memory));
  return status;
}

tenon_status Server::free(Reader& in) {
  const OpenDevice* device = vendor_.find(in.get<uint32_t>(), err_);
  if (!device) return TENON_INTERNAL;
  auto* memory = reinterpret_cast<void*>(in.get<uint64_t>());
  const auto bytes = in.get<uint64_t>();
  if (vendor_.pool())
    vendor_.pool()->pool_free(device->handle, memory, bytes, nullptr);
  else
    vendor_.api().free(device->handle, memory, bytes, nullptr);
  return TENON_OK;
}

tenon_status Server::copy_on(Reader& in) {
  const OpenDevice* device = vendor_.find(in.get<uint32_t>(), err_);
  if (!device) return TENON_INTERNAL;
  tenon_copy_request request = {};
  request.struct_size = sizeof request;
  request.direction = TENON_COPY_DEVICE_TO_DEVICE;
  request.dst = reinterpret_cast<void*>(in.get<uint64_t>());
  request.dst_offset = in.get<uint64_t>();
  request.bytes = in.get<uint64_t>();
  request.src = reinterpret_cast<void*>(in.get<uint64_t>());
  request.src_offset = in.get<uint64_t>();
  return vendor_.api().copy(device->handle, &request, err_);
}

tenon_status Server::copy_staged(Reader& in, int32_t direction) {
  const OpenDevice* device = vendor_.find(in.get<uint32_t>(), err_);
  if (!device) return TENON_INTERNAL;
  auto* memory = reinterpret_cast<void*>(in.get<uint64_t>());
  const auto offset = in.get<uint64_t>();
  tenon_copy_request request = {};
  request.struct_size = sizeof request;
  request.direction = direction;
  request.bytes = std::min(in.get<uint64_t>(), kStagingBytes);
  unsigned char* staging = lane_.staging[in.get<uint32_t>() & 1];
  if (direction == TENON_COPY_HOST_TO_DEVICE) {
    request.dst = memory;
    request.dst_offset = offset;
    request.src = staging;
    return vendor_.api().copy(device->handle, &request, err_);
  }
  private_.resize(kStagingBytes);
  request.dst = private_.data();
  request.src = memory;
  request.src_offset = offset;
  const tenon_status status = vendor_.api().copy(device->handle, &request, err_);
  if (status == TENON_OK) stream_copy(staging, private_.data(), request.bytes);
  return status;
}

tenon_status Server::fill(Reader& in) {
  const OpenDevice* device = vendor_.find(in.get<uint32_t>(), err_);
  if (!device) return TENON_INTERNAL;
  auto* memory = reinterpret_cast<void*>(in.get<uint64_t>());
  const auto offset = in.get<uint64_t>();
  const auto bytes = in.get<uint64_t>();
  const auto pattern_bytes = in.get<uint32_t>();
  const auto* pattern = in.get_array<unsigned char>(pattern_bytes);
  if (!pattern) return fail(err_, TENON_INTERNAL, "a message of the program ended too early");
  return vendor_.api().fill(device->handle, memory, offset, bytes, pattern, pattern_bytes, nullptr,
                            err_);
}

tenon_status Server::sync(Reader& in) {
  const OpenDevice* device = vendor_.find(in.get<uint32_t>(), err_);
  return device ? vendor_.api().sync(device->handle, nullptr, err_) : TENON_INTERNAL;
}

}  // namespace tenon::isolated
