// SPDX-License-Identifier: Apache-2.0
// The simulated devices of this process, and what is current on each thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "arena.hpp"
#include "device_process.hpp"
#include "errors.hpp"
#include "pool.hpp"
#include "stream.hpp"

namespace simulated {

class Device {
 public:
  Device(int ordinal, uint64_t memory_bytes);

  const int ordinal;
  Arena memory;
  Pool pool{*this};

  std::string name() const;
  std::string architecture() const;  // "sm_90", "gfx90a"

  // Memory that only the device can access.
  Error allocate(uint64_t bytes, void** out);
  Error release(void* memory);  // waits for the device
  void wait_for_all();          // work queued so far on every stream that is not captured

  std::shared_ptr<Stream> create_stream(unsigned flags, int priority);
  void forget_stream(const std::shared_ptr<Stream>& stream);
  std::shared_ptr<Stream> default_stream();
  // The default stream and the blocking ones wait for one another.
  void order_with_default_stream(Stream& stream);

  // Starts the process at the first call.
  Error process(DeviceProcess** out);
  bool has_process();

  Error lost() const { return lost_.load(std::memory_order_acquire); }
  void lose(Error error);
  void reset();  // frees everything; the device works again

  // Direct access to the memory of another device, once; what kernels reach does not change.
  Error enable_peer(const Device& peer);
  bool can_access(const Device& peer) const;
  bool has_peer(const Device& peer);

  void retain() { ++references_; }
  bool drop() { return references_.fetch_sub(1) == 1; }
  bool retained() const { return references_ > 0; }

 private:
  std::mutex mutex_;  // of the members below
  std::vector<std::shared_ptr<Stream>> streams_;
  std::shared_ptr<Stream> default_;
  std::mutex process_mutex_;
  std::unique_ptr<DeviceProcess> process_;
  std::atomic<Error> lost_{0};
  std::atomic<int> references_{0};
  std::set<int> peers_;
};

// Made by the first call of init.
Error init();
bool is_initialised();
const std::vector<Device*>& devices();
Arena& host_memory();  // pinned and managed

// Of the calling thread. With HIP, device 0 unless another was set.
Device* current();
void set_current(Device* device);
std::vector<Device*>& context_stack();

// The device whose memory the address lies in, or nullptr.
Device* device_of(const void* memory);
// Where the driver can access memory of a device or of the host's arena; nullptr: nothing such.
char* access(const void* memory, uint64_t bytes);

// Handles given out, so that a stale one is an error and no crash.
template <class T>
class Handles {
 public:
  T* add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    T* handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }
  std::shared_ptr<T> find(void* handle) {
    std::lock_guard lock(mutex_);
    auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> take(void* handle) {
    std::lock_guard lock(mutex_);
    auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  std::mutex mutex_;
  std::map<void*, std::shared_ptr<T>> objects_;
};

}  // namespace simulated
