// SPDX-License-Identifier: Apache-2.0
// Runs a model's allocations on the caching allocator of a device whose memory has addresses and
// nothing else, and counts what the allocator asks of the driver.
#pragma once

#include <random>
#include <utility>
#include <vector>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "tests/core/fake_device.hpp"
#include "tests/core/model_traces.hpp"

namespace tenon::test {

// The driver: addresses that grow and are never given twice, as after other programs have cut up
// memory. `joined`: those of large allocations lie end to end, and may be used as one.
template <class Tag, bool joined = false>
struct AddressDevice {
  static inline uint64_t next_address = uint64_t{1} << 40;
  static inline uint64_t next_small = uint64_t{1} << 46;
  static inline uint64_t calls = 0;

  static tenon_status alloc(tenon_device, const tenon_alloc_request* request, void** out,
                            tenon_err*) {
    constexpr uint64_t kGap = joined ? 0 : 4 << 20;
    uint64_t& next = joined && request->bytes <= 2 << 20 ? next_small : next_address;
    next = (next + kGap) / request->align * request->align;
    *out = reinterpret_cast<void*>(next);
    next += request->bytes;
    ++calls;
    return TENON_OK;
  }
  static void free(tenon_device, void*, uint64_t, tenon_stream) { ++calls; }

  static Device& device(const char* kind) {
    static const uint32_t number = [&] {
      Fake<Tag>::state().kind = kind;
      auto* table = new tenon_device_api(Fake<Tag>::table(true));
      table->alloc = alloc;
      table->free = free;
      if (joined) table->features = TENON_DEVICE_FEATURE_JOINED_MEMORY;
      uint32_t added = 0;
      if (add_device_kind(table, nullptr, &added, nullptr) != TENON_OK) std::abort();
      return added;
    }();
    return *find_device(TENON_DEVICE_ID(number, 0));
  }
};

// What the trace's slots hold.
class TraceReplay {
 public:
  explicit TraceReplay(Device& device) : device_(device) {
    tenon_stream made = nullptr;
    if (slots::stream_create(device.id, 0, &made, nullptr) == TENON_OK) streams_[1] = made;
  }
  ~TraceReplay() {
    for (auto& [data, bytes, stream] : held_) deallocate(device_, data, bytes, stream);
    slots::stream_destroy(device_.id, streams_[1]);
  }

  // False: out of memory.
  bool run(const std::vector<TraceEvent>& events) {
    for (const TraceEvent& event : events) {
      if (event.slot >= held_.size()) held_.resize(event.slot + 1);
      Held& held = held_[event.slot];
      tenon_stream stream = streams_[event.stream];
      if (event.bytes == 0) {
        deallocate(device_, std::exchange(held.data, nullptr), held.bytes, stream);
        continue;
      }
      held = {nullptr, event.bytes, stream};
      if (allocate(device_, event.bytes, stream, &held.data, nullptr) != TENON_OK) return false;
      if (stream) record_use(device_, held.data, nullptr);
    }
    return true;
  }

  // Of the memory got from the driver at the peak, the part that the program never used.
  double fragmentation() const {
    DeviceMemory& memory = DeviceMemory::of(device_);
    return 1 - static_cast<double>(memory.usage().totals().peak) /
                   static_cast<double>(memory.summary().peak_reserved);
  }

 private:
  struct Held {
    void* data = nullptr;
    uint64_t bytes = 0;
    tenon_stream stream = nullptr;
  };
  Device& device_;
  tenon_stream streams_[2] = {};
  std::vector<Held> held_;
};

}  // namespace tenon::test
