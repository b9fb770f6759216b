// SPDX-License-Identifier: Apache-2.0
// A host whose memory comes end to end, as from a range of addresses that was set aside for it.
// Pages that are never written take no memory.
#pragma once

#include <sys/mman.h>

#include <utility>

#include "tests/core/fake_device.hpp"

namespace tenon::test {

template <class Tag>
struct GrowingHost {
  static inline char* end = nullptr;  // where the next piece begins
  static inline char* top = nullptr;  // pieces for small blocks come down from here, out of the way
  static inline uint64_t gap = 0;     // as if another mapping had come before the next piece
  static inline uint64_t calls = 0;
  static inline uint64_t memory_bytes = uint64_t{1} << 40;  // of it a quarter may stay unused

  static tenon_status alloc(tenon_device, const tenon_alloc_request* request, void** out,
                            tenon_err*) {
    if (!end) {
      constexpr uint64_t kRoom = uint64_t{1} << 36;
      end = static_cast<char*>(mmap(nullptr, kRoom, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
      top = end + kRoom;
      end += -reinterpret_cast<uintptr_t>(end) % request->align;
      top -= reinterpret_cast<uintptr_t>(top) % request->align;
    }
    if (request->bytes <= request->align) {
      *out = top -= request->bytes;
    } else {
      *out = end += std::exchange(gap, 0);
      end += request->bytes;
    }
    if (end > top) std::abort();
    Fake<Tag>::state().live[*out] = request->bytes;
    ++calls;
    return TENON_OK;
  }
  static void free(tenon_device, void* data, uint64_t bytes, tenon_stream) {
    FakeState& state = Fake<Tag>::state();
    auto found = state.live.find(data);
    if (found == state.live.end() || found->second != bytes) ++state.wrong_frees;
    if (found != state.live.end()) state.live.erase(found);
    if (static_cast<char*>(data) + bytes == end) end = static_cast<char*>(data);
    ++calls;
  }

  static tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count,
                                tenon_err* err) {
    TENON_TRY(Fake<Tag>::enumerate(out, capacity, count, err));
    out->memory_bytes = memory_bytes;
    return TENON_OK;
  }

  static Device& device(const char* kind) {
    static const uint32_t number = [&] {
      Fake<Tag>::state().kind = kind;
      Fake<Tag>::state().flags = TENON_DEVICE_HOST_MEMORY;
      auto* table = new tenon_device_api(Fake<Tag>::table());
      table->enumerate = enumerate;
      table->alloc = alloc;
      table->free = free;
      uint32_t added = 0;
      if (add_device_kind(table, nullptr, &added, nullptr) != TENON_OK) std::abort();
      return added;
    }();
    return *find_device(TENON_DEVICE_ID(number, 0));
  }
};

}  // namespace tenon::test
