// SPDX-License-Identifier: Apache-2.0
// A stand-in for libascendcl.so: chips, their memory, streams that run their work on a thread of their own.
// Prototypes and numbers are those of hicann/runtime, include/external/acl. It is stricter than the real one
// where that would corrupt memory: sizes, handles, addresses and the current device are checked.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../failures.hpp"
#include "device_memory.hpp"

namespace {

using namespace simulated;
using namespace simulated::ascend;

constexpr int kInvalidParameter = 100000, kUninitialized = 100001, kRepeated = 100002;
constexpr int kInvalidHandle = 200005, kInvalidDevice = 200002;
constexpr int kNoContext = 107002, kOutOfMemory = 207001;
constexpr int kFaultyAddress = 507015;
constexpr int kStreamAborted = 107023;
constexpr int kCaptured = 107030;  // something that is not allowed while a stream is captured
constexpr uint32_t kTimeLine = 8;

std::mutex mutex;
bool initialized = false;
std::map<void*, size_t> pinned;
std::set<std::pair<int32_t, int32_t>> peers;  // the first of each may access the second
int64_t options[3] = {};                      // aclSysParamOpt
thread_local int32_t current = -1;
thread_local std::string message;

int fail(int error, const char* text) {
  message = text;
  return error;
}

struct Work {
  int (*run)(void*);
  void (*abort)(void*);  // nullptr: the work ends soon by itself
  void (*drop)(void*);
  void* user;
};

// What was captured. Its work runs as often as it is launched, and is dropped with the last reference.
struct Model {
  std::vector<Work> works;
  ~Model() {
    for (const Work& work : works) work.drop(work.user);
  }
};
std::map<void*, std::shared_ptr<Model>> models;

struct Stream {
  const int device = current;
  const uint64_t delay = environment("SIMULATED_DELAY_US", 0);
  std::minstd_rand random;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  Work running = {};
  bool busy = false, is_closed = false;
  std::shared_ptr<Model> captured;  // work goes here while there is one
  bool is_invalid = false;          // it was given what cannot be captured
  int error = 0;
  std::thread thread{[this] { loop(); }};

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return is_closed || !queue.empty(); });
      if (queue.empty()) return;
      const Work work = running = queue.front();
      queue.pop_front();
      busy = true;
      lock.unlock();
      // Late work shows who does not wait for it.
      if (delay) std::this_thread::sleep_for(std::chrono::microseconds(random() % delay));
      const int result = work.run(work.user);
      lock.lock();
      running.abort = nullptr;
      lock.unlock();
      work.drop(work.user);
      lock.lock();
      if (result && !error) error = result;
      busy = false;
      changed.notify_all();
    }
  }
  int wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return queue.empty() && !busy; });
    // Work that was dropped is told once; after all other errors the stream is of no use any more.
    return error == kStreamAborted ? std::exchange(error, 0) : error;
  }
  bool is_idle() {
    const std::lock_guard lock(mutex);
    return queue.empty() && !busy;
  }
  void abort() {
    std::unique_lock lock(mutex);
    std::deque<Work> dropped;
    dropped.swap(queue);
    if (busy && running.abort) running.abort(running.user);
    if ((busy || !dropped.empty()) && !error) error = kStreamAborted;
    changed.wait(lock, [&] { return !busy; });
    changed.notify_all();
    lock.unlock();
    for (const Work& work : dropped) work.drop(work.user);
  }
  ~Stream() {
    {
      const std::lock_guard lock(mutex);
      is_closed = true;
    }
    changed.notify_all();
    thread.join();
  }
};
std::set<Stream*> streams;

// The versions of an event: how often it was recorded, and which of them have passed.
struct Event {
  const uint32_t flags;
  uint64_t microseconds = 0;  // when it passed last
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, passed = 0;
  uint64_t dropped = 0;  // the last version whose record an abort dropped

  // False: the record was dropped, or `given_up` is set, and then `changed` is notified.
  bool wait(uint64_t version, const std::atomic<bool>* given_up = nullptr) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] {
      return passed >= version || (given_up ? given_up->load() : dropped >= version);
    });
    return passed >= version;
  }
};
std::map<void*, std::shared_ptr<Event>> events;

std::shared_ptr<Event> find_event(void* event) {
  const std::lock_guard lock(mutex);
  const auto found = events.find(event);
  return found == events.end() ? nullptr : found->second;
}

uint64_t microseconds_now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

bool is_pinned(const void* memory, size_t bytes) {
  const std::lock_guard lock(mutex);
  auto after = pinned.upper_bound(const_cast<void*>(memory));
  if (after == pinned.begin()) return false;
  const auto& [first, size] = *--after;
  return static_cast<const char*>(memory) + bytes <= static_cast<const char*>(first) + size;
}

// Whether a copy of the current chip may go from one address to the other.
bool is_reachable(const void* dst, const void* src) {
  const int32_t to = simulated_ascend_device_of(dst), from = simulated_ascend_device_of(src);
  if (to < 0 || to == from) return true;  // addresses are checked elsewhere
  const std::lock_guard lock(mutex);
  return peers.count({current, current == to ? from : to}) != 0;
}

bool is_stream(void* stream) {
  const std::lock_guard lock(mutex);
  return streams.count(static_cast<Stream*>(stream)) != 0;
}

// What every call checks first, and the failures that a test wants.
int enter(const char* name, bool needs_device = true) {
  if (const int error = count_call(name)) return fail(error, "a failure that a test wants");
  const std::lock_guard lock(mutex);
  if (!initialized) return fail(kUninitialized, "aclInit was not called");
  if (needs_device && current < 0) return fail(kNoContext, "no device is current on this thread");
  return 0;
}

}  // namespace

// Not allowed while the stream is captured, whose recording is then of no use.
static int invalidate(void* stream, const char* what) {
  auto& self = *static_cast<Stream*>(stream);
  const std::lock_guard lock(self.mutex);
  if (!self.captured) return 0;
  self.is_invalid = true;
  static thread_local std::string text;
  text = std::string("EE1016: ") + what + " is not permitted while the stream is captured";
  return fail(kCaptured, text.c_str());
}

#define EXPORT extern "C" __attribute__((visibility("default")))
#define ENTER() \
  if (const int error = enter(__func__)) return error
#define ENTER_WITHOUT_DEVICE() \
  if (const int error = enter(__func__, false)) return error

EXPORT int aclInit(const char*) {
  const std::lock_guard lock(mutex);
  if (initialized) return kRepeated;
  initialized = true;
  return 0;
}
EXPORT const char* aclGetRecentErrMsg() { return message.c_str(); }
EXPORT const char* aclrtGetSocName() { return "Ascend910B3"; }
EXPORT int aclrtGetDeviceCount(uint32_t* count) {
  ENTER_WITHOUT_DEVICE();
  *count = static_cast<uint32_t>(device_count());
  return 0;
}
EXPORT int aclrtSetDevice(int32_t device) {
  ENTER_WITHOUT_DEVICE();
  if (device < 0 || device >= device_count())
    return fail(kInvalidDevice, "there is no such device");
  current = device;
  return 0;
}
EXPORT int aclrtResetDevice(int32_t device) {
  ENTER_WITHOUT_DEVICE();
  if (device < 0 || device >= device_count())
    return fail(kInvalidDevice, "there is no such device");
  current = -1;
  return 0;
}
EXPORT int aclrtGetMemInfo(int, size_t* free, size_t* total) {
  ENTER();
  *free = device_free(current);
  *total = device_total(current);
  return 0;
}
EXPORT int aclrtMalloc(void** memory, size_t bytes, int policy) {
  ENTER();
  if (!memory || bytes == 0 || policy < 0 || policy > 5)
    return fail(kInvalidParameter, "aclrtMalloc: expected a size above 0 and a policy");
  void* found = device_allocate(bytes, current);
  if (!found) return fail(kOutOfMemory, "EL0004: the device is out of memory");
  *memory = found;
  return 0;
}
EXPORT int aclrtFree(void* memory) {
  ENTER();
  return device_release(memory) ? 0 : fail(kInvalidParameter, "aclrtFree: not device memory");
}
EXPORT int aclrtMallocHost(void** memory, size_t bytes) {
  ENTER();
  void* found = bytes ? std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : nullptr;
  if (!found) return fail(kOutOfMemory, "aclrtMallocHost: no memory");
  const std::lock_guard lock(mutex);
  pinned[found] = bytes;
  *memory = found;
  return 0;
}
EXPORT int aclrtFreeHost(void* memory) {
  ENTER();
  const std::lock_guard lock(mutex);
  if (pinned.erase(memory) == 0) return fail(kInvalidParameter, "aclrtFreeHost: not pinned memory");
  std::free(memory);
  return 0;
}
// With SIMULATED_ASCEND_PEERS=0 no chip can.
EXPORT int aclrtDeviceCanAccessPeer(int32_t* can, int32_t device, int32_t peer) {
  ENTER_WITHOUT_DEVICE();
  const int count = device_count();
  if (!can || device < 0 || device >= count || peer < 0 || peer >= count || device == peer)
    return fail(kInvalidParameter, "aclrtDeviceCanAccessPeer: expected two devices");
  *can = environment("SIMULATED_ASCEND_PEERS", 1) != 0;
  return 0;
}
EXPORT int aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags) {
  ENTER();
  if (flags != 0 || peer < 0 || peer >= device_count() || peer == current)
    return fail(kInvalidParameter, "aclrtDeviceEnablePeerAccess: expected another device and 0");
  if (environment("SIMULATED_ASCEND_PEERS", 1) == 0)
    return fail(kInvalidParameter,
                "aclrtDeviceEnablePeerAccess: the devices do not reach each other");
  const std::lock_guard lock(mutex);
  if (!peers.insert({current, peer}).second)
    return fail(kInvalidParameter, "aclrtDeviceEnablePeerAccess: it is enabled already");
  return 0;
}
EXPORT int aclrtMemcpy(void* dst, size_t room, const void* src, size_t bytes, int kind) {
  ENTER();
  if (bytes > room || bytes == 0 || kind < 1 || kind > 3)
    return fail(kInvalidParameter, "aclrtMemcpy: expected 0 < count <= destMax and a kind");
  const bool to_device = kind != 2, from_device = kind != 1;
  void* to = to_device ? simulated_ascend_translate(dst, bytes) : dst;
  const void* from = from_device ? simulated_ascend_translate(src, bytes) : src;
  if (!to || !from) return fail(kInvalidParameter, "aclrtMemcpy: an address is not of the device");
  if (kind == 3 && !is_reachable(dst, src))
    return fail(kInvalidParameter, "aclrtMemcpy: access to the other device was not enabled");
  if (kind == 3 && static_cast<char*>(to) < static_cast<const char*>(from) + bytes &&
      static_cast<const char*>(from) < static_cast<char*>(to) + bytes)
    return fail(kInvalidParameter, "aclrtMemcpy: ranges overlap");
  std::memcpy(to, from, bytes);
  return 0;
}
EXPORT int aclrtMemset(void* dst, size_t room, int32_t value, size_t bytes) {
  ENTER();
  void* to = simulated_ascend_translate(dst, bytes);
  if (!to || bytes > room) return fail(kInvalidParameter, "aclrtMemset: not device memory");
  std::memset(to, value, bytes);
  return 0;
}
EXPORT int aclrtCreateStream(void** stream) {
  ENTER();
  auto* made = new Stream;
  const std::lock_guard lock(mutex);
  streams.insert(made);
  *stream = made;
  return 0;
}
EXPORT int aclrtDestroyStream(void* stream) {
  ENTER();
  if (!is_stream(stream)) return fail(kInvalidHandle, "aclrtDestroyStream: not a stream");
  if (const int error = invalidate(stream, "aclrtDestroyStream")) return error;
  {
    const std::lock_guard lock(mutex);
    streams.erase(static_cast<Stream*>(stream));
  }
  delete static_cast<Stream*>(stream);
  return 0;
}
EXPORT int aclrtSynchronizeStream(void* stream) {
  ENTER();
  if (!is_stream(stream)) return fail(kInvalidHandle, "aclrtSynchronizeStream: not a stream");
  if (const int error = invalidate(stream, "aclrtSynchronizeStream")) return error;
  const int error = static_cast<Stream*>(stream)->wait();
  return error ? fail(error, "EZ9999: a kernel of this stream failed") : 0;
}

EXPORT int aclrtStreamQuery(void* stream, int* status) {
  ENTER();
  if (!is_stream(stream)) return fail(kInvalidHandle, "aclrtStreamQuery: not a stream");
  *status = static_cast<Stream*>(stream)->is_idle() ? 0 : 1;
  return 0;
}
// Drops what is queued and ends what runs. A stream that waits for an event whose record was dropped goes on waiting.
EXPORT int aclrtStreamAbort(void* stream) {
  ENTER();
  if (!is_stream(stream)) return fail(kInvalidHandle, "aclrtStreamAbort: not a stream");
  static_cast<Stream*>(stream)->abort();
  return 0;
}

// Work in the order of the stream.
static int enqueue(void* stream, std::function<int()> work) {
  if (!is_stream(stream)) return fail(kInvalidHandle, "expected a stream");
  return simulated_ascend_queue(
      stream, [](void* user) { return (*static_cast<std::function<int()>*>(user))(); },
      [](void* user) { delete static_cast<std::function<int()>*>(user); },
      new std::function<int()>(std::move(work)));
}

// Addresses are looked up when the copy runs: until then the memory has to live.
EXPORT int aclrtMemcpyAsync(void* dst, size_t room, const void* src, size_t bytes, int kind,
                            void* stream) {
  ENTER();
  if (bytes > room || bytes == 0 || kind < 1 || kind > 3)
    return fail(kInvalidParameter, "aclrtMemcpyAsync: expected 0 < count <= destMax and a kind");
  if (kind != 3 && is_stream(stream) && !is_pinned(kind == 1 ? src : dst, bytes))
    if (const int error = invalidate(stream, "aclrtMemcpyAsync of pageable memory")) return error;
  if (kind == 3 && !is_reachable(dst, src))
    return fail(kInvalidParameter, "aclrtMemcpyAsync: access to the other device was not enabled");
  return enqueue(stream, [=] {
    void* to = kind != 2 ? simulated_ascend_translate(dst, bytes) : dst;
    const void* from = kind != 1 ? simulated_ascend_translate(src, bytes) : src;
    if (!to || !from) return kFaultyAddress;
    std::memcpy(to, from, bytes);
    return 0;
  });
}
EXPORT int aclrtMemsetAsync(void* dst, size_t room, int32_t value, size_t bytes, void* stream) {
  ENTER();
  if (bytes > room) return fail(kInvalidParameter, "aclrtMemsetAsync: expected count <= maxCount");
  return enqueue(stream, [=] {
    void* to = simulated_ascend_translate(dst, bytes);
    if (!to) return kFaultyAddress;
    std::memset(to, value, bytes);
    return 0;
  });
}
EXPORT int aclrtSynchronizeDevice() {
  ENTER();
  std::set<Stream*> all;
  {
    const std::lock_guard lock(mutex);
    for (Stream* stream : streams)
      if (stream->device == current) all.insert(stream);
  }
  for (Stream* stream : all)
    if (const int error = invalidate(stream, "aclrtSynchronizeDevice")) return error;
  int first = 0;
  for (Stream* stream : all)
    if (const int error = stream->wait(); error && !first) first = error;
  return first ? fail(first, "EZ9999: a kernel of this device failed") : 0;
}
EXPORT int aclrtCreateEventExWithFlag(void** event, uint32_t flag) {
  ENTER();
  if (flag == 0) return fail(kInvalidParameter, "aclrtCreateEventExWithFlag: expected a flag");
  auto made = std::make_shared<Event>(flag);
  const std::lock_guard lock(mutex);
  *event = made.get();
  events[made.get()] = std::move(made);
  return 0;
}
EXPORT int aclrtDestroyEvent(void* event) {
  ENTER();
  const std::lock_guard lock(mutex);
  return events.erase(event) ? 0 : fail(kInvalidHandle, "aclrtDestroyEvent: not an event");
}
EXPORT int aclrtRecordEvent(void* event, void* stream) {
  ENTER();
  struct Record {
    std::shared_ptr<Event> event;
    uint64_t version = 0;
    bool has_run = false;
  };
  const std::shared_ptr<Event> found = find_event(event);
  if (!found) return fail(kInvalidHandle, "aclrtRecordEvent: not an event");
  auto* const record = new Record{found};
  {
    const std::lock_guard lock(found->mutex);
    record->version = ++found->recorded;
  }
  return simulated_ascend_queue(
      stream,
      [](void* user) {
        auto& self = *static_cast<Record*>(user);
        const std::lock_guard lock(self.event->mutex);
        self.event->passed = std::max(self.event->passed, self.version);
        self.event->microseconds = microseconds_now();
        self.has_run = true;
        self.event->changed.notify_all();
        return 0;
      },
      [](void* user) {
        const std::unique_ptr<Record> self(static_cast<Record*>(user));
        const std::lock_guard lock(self->event->mutex);
        if (!self->has_run) self->event->dropped = std::max(self->event->dropped, self->version);
        self->event->changed.notify_all();
      },
      record);
}
// When the event's last record ended, since the chip started.
EXPORT int aclrtEventGetTimestamp(void* event, uint64_t* microseconds) {
  ENTER();
  const std::shared_ptr<Event> found = find_event(event);
  if (!found) return fail(kInvalidHandle, "aclrtEventGetTimestamp: not an event");
  const std::lock_guard lock(found->mutex);
  if (!(found->flags & kTimeLine) || found->passed == 0 || found->passed != found->recorded)
    return fail(kInvalidParameter,
                "aclrtEventGetTimestamp: expected ACL_EVENT_TIME_LINE and a record that ended");
  *microseconds = found->microseconds;
  return 0;
}
EXPORT int aclrtStreamWaitEvent(void* stream, void* event) {
  ENTER();
  struct Wait {
    std::shared_ptr<Event> event;
    uint64_t version = 0;
    std::atomic<bool> given_up{false};
  };
  const std::shared_ptr<Event> found = find_event(event);
  if (!found) return fail(kInvalidHandle, "aclrtStreamWaitEvent: not an event");
  if (!(found->flags & 1))
    return fail(kInvalidParameter, "aclrtStreamWaitEvent: expected ACL_EVENT_SYNC");
  auto* const wait = new Wait{found};
  {
    const std::lock_guard lock(found->mutex);
    wait->version = found->recorded;
  }
  return simulated_ascend_queue_abortable(
      stream,
      [](void* user) {
        const auto& self = *static_cast<Wait*>(user);
        self.event->wait(self.version, &self.given_up);
        return 0;
      },
      [](void* user) {
        auto& self = *static_cast<Wait*>(user);
        const std::lock_guard lock(self.event->mutex);
        self.given_up = true;
        self.event->changed.notify_all();
      },
      [](void* user) { delete static_cast<Wait*>(user); }, wait);
}
EXPORT int aclrtQueryEventStatus(void* event, int* status) {
  ENTER();
  const std::shared_ptr<Event> found = find_event(event);
  if (!found) return fail(kInvalidHandle, "aclrtQueryEventStatus: not an event");
  const std::lock_guard lock(found->mutex);
  *status = found->passed == found->recorded;
  return 0;
}
EXPORT int aclrtSynchronizeEvent(void* event) {
  ENTER();
  const std::shared_ptr<Event> found = find_event(event);
  if (!found) return fail(kInvalidHandle, "aclrtSynchronizeEvent: not an event");
  uint64_t version = 0;
  {
    const std::lock_guard lock(found->mutex);
    version = found->recorded;
  }
  return found->wait(version) ? 0 : fail(kStreamAborted, "the record of the event was dropped");
}

// ---- models that are made of what a stream is given -------------------------------------------------

EXPORT int aclmdlRICaptureBegin(void* stream, int mode) {
  ENTER();
  if (!is_stream(stream) || mode < 0 || mode > 2)
    return fail(kInvalidParameter,
                "aclmdlRICaptureBegin: expected a stream and a mode from 0 to 2");
  auto& self = *static_cast<Stream*>(stream);
  const std::lock_guard lock(self.mutex);
  if (self.captured) return fail(kCaptured, "aclmdlRICaptureBegin: the stream is captured already");
  self.captured = std::make_shared<Model>();
  self.is_invalid = false;
  return 0;
}
EXPORT int aclmdlRICaptureEnd(void* stream, void** model) {
  ENTER();
  if (!is_stream(stream) || !model)
    return fail(kInvalidParameter, "aclmdlRICaptureEnd: expected a stream and a place for a model");
  auto& self = *static_cast<Stream*>(stream);
  std::shared_ptr<Model> captured;
  {
    const std::lock_guard lock(self.mutex);
    captured = std::exchange(self.captured, nullptr);
    if (!captured) return fail(kInvalidParameter, "aclmdlRICaptureEnd: the stream is not captured");
    if (self.is_invalid) return fail(kCaptured, "aclmdlRICaptureEnd: the capture became invalid");
  }
  const std::lock_guard lock(mutex);
  *model = captured.get();
  models[captured.get()] = std::move(captured);
  return 0;
}
EXPORT int aclmdlRIExecuteAsync(void* model, void* stream) {
  ENTER();
  std::shared_ptr<Model> found;
  {
    const std::lock_guard lock(mutex);
    const auto position = models.find(model);
    if (position == models.end()) return fail(kInvalidHandle, "aclmdlRIExecuteAsync: not a model");
    found = position->second;
  }
  return enqueue(stream, [found] {
    for (const Work& work : found->works)
      if (const int error = work.run(work.user)) return error;
    return 0;
  });
}
EXPORT int aclmdlRIDestroy(void* model) {
  ENTER();
  std::shared_ptr<Model> dropped;  // after the lock is gone
  const std::lock_guard lock(mutex);
  const auto position = models.find(model);
  if (position == models.end()) return fail(kInvalidHandle, "aclmdlRIDestroy: not a model");
  dropped = position->second;
  models.erase(position);
  return 0;
}

// ---- options of the process ----------------------------------------------------------------------------

EXPORT int aclrtSetSysParamOpt(int option, int64_t value) {
  ENTER_WITHOUT_DEVICE();
  if (option < 0 || option > 2) return fail(kInvalidParameter, "aclrtSetSysParamOpt: no option");
  const std::lock_guard lock(mutex);
  options[option] = value;
  return 0;
}
EXPORT int aclrtGetSysParamOpt(int option, int64_t* value) {
  ENTER_WITHOUT_DEVICE();
  if (option < 0 || option > 2) return fail(kInvalidParameter, "aclrtGetSysParamOpt: no option");
  const std::lock_guard lock(mutex);
  *value = options[option];
  return 0;
}

EXPORT int64_t simulated_ascend_determinism() {
  const std::lock_guard lock(mutex);
  return options[0];
}
EXPORT bool simulated_ascend_is_captured(void* stream) {
  if (!is_stream(stream)) return false;
  auto& self = *static_cast<Stream*>(stream);
  const std::lock_guard lock(self.mutex);
  return self.captured != nullptr;
}
EXPORT int simulated_ascend_current_device() { return current; }

EXPORT int simulated_ascend_queue_abortable(void* stream, int (*work)(void*), void (*abort)(void*),
                                            void (*drop)(void*), void* user) {
  if (current < 0 || !is_stream(stream) || static_cast<Stream*>(stream)->device != current) {
    drop(user);
    return fail(kInvalidHandle, "expected a stream of the current device");
  }
  auto* to = static_cast<Stream*>(stream);
  const std::lock_guard lock(to->mutex);
  if (to->captured) {
    to->captured->works.push_back({work, abort, drop, user});
    return 0;
  }
  to->queue.push_back({work, abort, drop, user});
  to->changed.notify_all();
  return 0;
}

EXPORT int simulated_ascend_queue(void* stream, int (*work)(void*), void (*drop)(void*),
                                  void* user) {
  return simulated_ascend_queue_abortable(stream, work, nullptr, drop, user);
}
