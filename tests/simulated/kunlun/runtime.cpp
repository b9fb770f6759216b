// SPDX-License-Identifier: Apache-2.0
// A stand-in for libxpurt.so: chips, their memory, and their streams, each of which runs its work on a thread.
// Prototypes and numbers are those of xpu/runtime.h and xpu/defs.h. It is stricter than the real one where that
// would corrupt memory: sizes and addresses are checked, and memory, streams and events are those of the current device.
#include "runtime.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "../ascend/device_memory.hpp"
#include "../failures.hpp"

namespace {

using namespace simulated;
using namespace simulated::ascend;

constexpr int kNoDevice = -701, kNoMemory = -705, kNoHostMemory = -706, kInvalid = -707,
              kNotYet = -710;
constexpr uint64_t kModel = 300;  // KL3

thread_local int current = 0;
std::mutex pinned_mutex;
std::set<void*> pinned;

struct Work {
  int (*run)(void*);
  void (*drop)(void*);
  void* user;
};

class Stream {
 public:
  explicit Stream(int device) : device_(device) {}
  int device() const { return device_; }
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }
  void queue(Work work) {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
    works_.push_back(work);
    changed_.notify_all();
  }
  int wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return works_.empty() && !busy_; });
    return error_;
  }

 private:
  void loop() {
    current = device_;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_closed_ || !works_.empty(); });
      if (works_.empty()) return;
      const Work work = works_.front();
      works_.pop_front();
      busy_ = true;
      lock.unlock();
      // Late work shows who does not wait for it.
      if (delay_) std::this_thread::sleep_for(std::chrono::microseconds(random_() % delay_));
      const int result = work.run(work.user);
      work.drop(work.user);
      lock.lock();
      if (result && !error_) error_ = result;
      busy_ = false;
      changed_.notify_all();
    }
  }

  const int device_;
  const uint64_t delay_ = environment("SIMULATED_DELAY_US", 0);
  std::minstd_rand random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> works_;
  bool busy_ = false, is_closed_ = false;
  int error_ = 0;  // stays: a chip is in a bad state after a failed kernel
  std::thread thread_;
};

Stream& default_stream(int device) {
  static auto* const all = [] {  // outlives every exit handler
    auto* made = new std::deque<Stream>;
    for (int each = 0; each < kMaxDevices; ++each) made->emplace_back(each);
    return made;
  }();
  return (*all)[static_cast<size_t>(device)];
}

std::mutex handles_mutex;
std::set<void*> streams;  // but the default ones

// The versions of an event: how often it was recorded, and which of them have passed.
struct Event {
  const int device = current;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, passed = 0;

  void wait(uint64_t version) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return passed >= version; });
  }
  uint64_t version() {
    const std::lock_guard lock(mutex);
    return recorded;
  }
};
std::map<void*, std::shared_ptr<Event>> events;

// nullptr: none of the current device.
Stream* find_stream(void* handle) {
  if (!handle) return &default_stream(current);
  const std::lock_guard lock(handles_mutex);
  if (!streams.count(handle)) return nullptr;
  auto* const stream = static_cast<Stream*>(handle);
  return stream->device() == current ? stream : nullptr;
}
std::shared_ptr<Event> find_event(void* handle) {
  const std::lock_guard lock(handles_mutex);
  const auto found = events.find(handle);
  return found != events.end() && found->second->device == current ? found->second : nullptr;
}

void enqueue(Stream& to, std::function<int()> work) {
  to.queue({[](void* user) { return (*static_cast<std::function<int()>*>(user))(); },
            [](void* user) { delete static_cast<std::function<int()>*>(user); },
            new std::function<int()>(std::move(work))});
}
int enqueue(void* to, std::function<int()> work) {
  Stream* const found = find_stream(to);
  if (!found) return kInvalid;
  enqueue(*found, std::move(work));
  return 0;
}

bool is_device(int device) { return device >= 0 && device < device_count(); }

// Where memory of a device is; nullptr: it is not one allocation there.
char* translate(const void* address, size_t bytes, int device) {
  return simulated_ascend_device_of(address) == device
             ? static_cast<char*>(simulated_ascend_translate(address, bytes))
             : nullptr;
}

}  // namespace

void* simulated_xpu_translate(const void* address, size_t bytes) {
  return translate(address, bytes, current);
}
void simulated_xpu_queue(int (*work)(void*), void (*drop)(void*), void* user) {
  default_stream(current).queue({work, drop, user});
}
int simulated_xpu_current_device() { return current; }

#define XRE_EXPORT extern "C" __attribute__((visibility("default")))
#define XRE_ENTER(name) \
  if (const int error = count_call(#name)) return error

XRE_EXPORT int xpu_device_count(int* count) {
  XRE_ENTER(xpu_device_count);
  if (!count) return kInvalid;
  *count = device_count();
  return 0;
}

XRE_EXPORT int xpu_device_get_attr(uint64_t* value, int attribute, int device) {
  XRE_ENTER(xpu_device_get_attr);
  if (!value || !is_device(device)) return kInvalid;
  if (attribute == 4)
    *value = kModel;
  else if (attribute == 5)
    *value = device_total(device);
  else
    return kInvalid;
  return 0;
}

XRE_EXPORT int xpu_set_device(int device) {
  XRE_ENTER(xpu_set_device);
  if (!is_device(device)) return kNoDevice;
  current = device;
  return 0;
}

XRE_EXPORT int xpu_current_device(int* device) {
  XRE_ENTER(xpu_current_device);
  if (!device) return kInvalid;
  *device = current;
  return 0;
}

XRE_EXPORT int xpu_malloc(void** memory, uint64_t bytes, int kind) {
  XRE_ENTER(xpu_malloc);
  if (!memory || bytes == 0 || kind != 0) return kInvalid;  // release notes 3.8: size 0 is invalid
  *memory = device_allocate(bytes, current);
  return *memory ? 0 : kNoMemory;
}

XRE_EXPORT int xpu_free(void* memory) {
  XRE_ENTER(xpu_free);
  default_stream(current).wait();
  if (simulated_ascend_device_of(memory) != current) return kInvalid;
  return device_release(memory) ? 0 : kInvalid;
}

XRE_EXPORT int xpu_host_alloc(void** memory, uint64_t bytes, unsigned flags) {
  XRE_ENTER(xpu_host_alloc);
  if (!memory || bytes == 0 || flags != 0) return kInvalid;
  *memory = ::malloc(bytes);
  if (!*memory) return kNoHostMemory;
  const std::lock_guard lock(pinned_mutex);
  pinned.insert(*memory);
  return 0;
}

XRE_EXPORT int xpu_host_free(void* memory) {
  XRE_ENTER(xpu_host_free);
  const std::lock_guard lock(pinned_mutex);
  if (!pinned.erase(memory)) return kInvalid;
  ::free(memory);
  return 0;
}

// A copy does not wait for kernels of the default stream: who needs that calls xpu_wait first.
XRE_EXPORT int xpu_memcpy(void* dst, const void* src, uint64_t bytes, int kind) {
  XRE_ENTER(xpu_memcpy);
  if (!dst || !src || kind < 0 || kind > 2) return kInvalid;
  void* to = kind == 0 ? dst : simulated_xpu_translate(dst, bytes);
  const void* from = kind == 1 ? src : simulated_xpu_translate(src, bytes);
  if (!to || !from) return kInvalid;
  const auto* a = static_cast<const char*>(to);
  const auto* b = static_cast<const char*>(from);
  if (kind == 2 && a < b + bytes && b < a + bytes) return kInvalid;
  std::memcpy(to, from, bytes);
  return 0;
}

// No header says whose default stream the work is on, or whether it is work of one: each of the two does a half.
XRE_EXPORT int xpu_memcpy_peer(int dst_device, void* dst, int src_device, const void* src,
                               uint64_t bytes) {
  XRE_ENTER(xpu_memcpy_peer);
  if (!is_device(dst_device) || !is_device(src_device)) return kNoDevice;
  if (!translate(dst, bytes, dst_device) || !translate(src, bytes, src_device)) return kInvalid;
  const auto copy_part = [=](uint64_t begin, uint64_t end) {
    char* const to = translate(dst, bytes, dst_device);
    const char* const from = translate(src, bytes, src_device);
    if (!to || !from) return kInvalid;
    std::memcpy(to + begin, from + begin, end - begin);
    return 0;
  };
  enqueue(default_stream(src_device), [=] { return copy_part(0, bytes / 2); });
  enqueue(default_stream(dst_device), [=] { return copy_part(bytes / 2, bytes); });
  return 0;
}

XRE_EXPORT int xpu_wait(void* of) {
  XRE_ENTER(xpu_wait);
  Stream* const found = find_stream(of);
  return found ? found->wait() : kInvalid;
}

XRE_EXPORT int xpu_stream_create(void** made) {
  XRE_ENTER(xpu_stream_create);
  if (!made) return kInvalid;
  const std::lock_guard lock(handles_mutex);
  *made = *streams.insert(new Stream(current)).first;
  return 0;
}
XRE_EXPORT int xpu_stream_destroy(void* of) {
  XRE_ENTER(xpu_stream_destroy);
  if (!of || !find_stream(of)) return kInvalid;
  {
    const std::lock_guard lock(handles_mutex);
    streams.erase(of);
  }
  delete static_cast<Stream*>(of);
  return 0;
}
// Addresses are looked up when the copy runs: until then the memory has to live.
XRE_EXPORT int xpu_memcpy_async(void* dst, const void* src, uint64_t bytes, int kind, void* on) {
  XRE_ENTER(xpu_memcpy_async);
  if (!dst || !src || kind < 0 || kind > 2 || !on) return kInvalid;
  return enqueue(on, [=] {
    void* to = kind == 0 ? dst : simulated_xpu_translate(dst, bytes);
    const void* from = kind == 1 ? src : simulated_xpu_translate(src, bytes);
    if (!to || !from) return kInvalid;
    std::memcpy(to, from, bytes);
    return 0;
  });
}
XRE_EXPORT int xpu_event_create(void** made) {
  XRE_ENTER(xpu_event_create);
  if (!made) return kInvalid;
  auto event = std::make_shared<Event>();
  const std::lock_guard lock(handles_mutex);
  *made = event.get();
  events[event.get()] = std::move(event);
  return 0;
}
XRE_EXPORT int xpu_event_destroy(void* event) {
  XRE_ENTER(xpu_event_destroy);
  const std::lock_guard lock(handles_mutex);
  return events.erase(event) ? 0 : kInvalid;
}
XRE_EXPORT int xpu_event_record(void* event, void* on) {
  XRE_ENTER(xpu_event_record);
  const std::shared_ptr<Event> found = find_event(event);
  if (!found) return kInvalid;
  uint64_t version = 0;
  {
    const std::lock_guard lock(found->mutex);
    version = ++found->recorded;
  }
  return enqueue(on, [found, version] {
    const std::lock_guard lock(found->mutex);
    found->passed = std::max(found->passed, version);
    found->changed.notify_all();
    return 0;
  });
}
XRE_EXPORT int xpu_event_wait(void* event) {
  XRE_ENTER(xpu_event_wait);
  const std::shared_ptr<Event> found = find_event(event);
  if (!found) return kInvalid;
  found->wait(found->version());
  return 0;
}
XRE_EXPORT int xpu_event_query(void* event) {
  XRE_ENTER(xpu_event_query);
  const std::shared_ptr<Event> found = find_event(event);
  if (!found) return kInvalid;
  const std::lock_guard lock(found->mutex);
  return found->passed == found->recorded ? 0 : kNotYet;
}
XRE_EXPORT int xpu_stream_wait_event(void* of, void* event) {
  XRE_ENTER(xpu_stream_wait_event);
  const std::shared_ptr<Event> found = find_event(event);
  if (!found || !of) return kInvalid;
  return enqueue(of, [found, version = found->version()] {
    found->wait(version);
    return 0;
  });
}
