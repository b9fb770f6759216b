// SPDX-License-Identifier: Apache-2.0
#include "runtime/tracer.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "runtime/device.hpp"

namespace gpu::tracer {
namespace {

// Other libraries number their calls too, from 1 most likely; roctracer does not tell whose number it is.
constexpr uint64_t kFirstNumber = 0x7465'6e6f'0000'0000;

// Calls of the driver whose work may still be under way. A record that comes later than so many calls after its own is lost.
constexpr size_t kMaxCorrelations = size_t{1} << 20;
// Records that wait for what says whose they are; most of so many are those of other libraries.
constexpr size_t kMaxWaiting = size_t{1} << 16;

struct State {
  std::mutex starting;
  int running = 0;

  std::mutex mutex;  // of what follows
  std::vector<Call> calls;
  std::map<Call, uint64_t> numbers;                // of calls: their indices plus kFirstNumber
  std::unordered_map<uint64_t, uint64_t> call_of;  // by correlation
  std::deque<uint64_t> correlations;               // oldest first
  // By correlation: records that came before what says whose they are, as the libraries promise no order of buffers.
  std::unordered_multimap<uint64_t, tenon_profile_record> waiting;
  std::deque<uint64_t> waiting_order;  // oldest first, with some that wait no more
};

// Never destroyed: the library's threads deliver until the process ends.
State& state() {
  static auto* const all = new State;
  return *all;
}

// With the lock held.
void finish(const Call& call, tenon_profile_record record) {
  if (!call.profile) return;
  record.stream = call.stream;
  // What copies and fills is the library's choice; several drivers do it with kernels.
  if (call.kind != TENON_PROFILE_KERNEL) {
    record.kind = call.kind;
    if (!record.bytes) record.bytes = call.bytes;
  }
  const std::string name = record.name;
  const bool is_named = call.kind != TENON_PROFILE_KERNEL || name.empty() || name == call.name;
  std::snprintf(record.name, sizeof record.name, "%s%s%s", call.name, is_named ? "" : ": ",
                is_named ? "" : name.c_str());
  call.profile->add_traced(record);
}

// With the lock held.
void wait(State& self, uint64_t correlation, const tenon_profile_record& record) {
  self.waiting.emplace(correlation, record);
  self.waiting_order.push_back(correlation);
  while (!self.waiting_order.empty()) {
    const auto oldest = self.waiting.find(self.waiting_order.front());
    if (oldest != self.waiting.end()) {
      if (self.waiting.size() <= kMaxWaiting) return;
      self.waiting.erase(oldest);
    }
    self.waiting_order.pop_front();
  }
}

// The library keeps pointers to our functions, so our code has to stay when the plugin is unloaded.
void stay_loaded() {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&stay_loaded), &here))
    dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

bool decide() {
  std::string why = vendor::tracer::open();
  const bool is_there = why.empty();
  if (is_there) {
    stay_loaded();
    why = vendor::tracer::start();
    if (why.empty()) vendor::tracer::stop();
  }
  if (!why.empty()) log(is_there ? 2 : 1, "profiles have the times of events: %s", why.c_str());
  return why.empty();
}

}  // namespace

bool is_used() {
  static const bool used = decide();
  return used;
}

std::string start() {
  State& self = state();
  const std::lock_guard lock(self.starting);
  if (self.running == 0) {
    const std::string why = vendor::tracer::start();
    if (!why.empty()) return why;
  }
  ++self.running;
  return "";
}

void stop() {
  State& self = state();
  const std::lock_guard lock(self.starting);
  if (--self.running == 0) vendor::tracer::stop();
}

bool enter(const Call& call) try {
  uint64_t number = 0;
  {
    State& self = state();
    const std::lock_guard lock(self.mutex);
    const auto [place, is_new] = self.numbers.try_emplace(call, kFirstNumber + self.calls.size());
    if (is_new) self.calls.push_back(call);
    number = place->second;
  }
  vendor::tracer::push(number);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void leave() { vendor::tracer::pop(); }

void flush() {
  vendor::tracer::flush();
  if (const uint64_t lost = vendor::tracer::lost())
    log(2, "%llu records of this profile were dropped by the tracing library: it is incomplete",
        static_cast<unsigned long long>(lost));
}

bool now(uint64_t* out) { return vendor::tracer::now(out); }

void forget(const Profile* profile) {
  State& self = state();
  const std::lock_guard lock(self.mutex);
  for (Call& call : self.calls)
    if (call.profile == profile) call.profile = nullptr;
  std::erase_if(self.numbers, [=](const auto& each) { return each.first.profile == profile; });
}

// Without memory of the host the record is dropped; the work is not affected.
void add(const Activity& activity) try {
  tenon_profile_record record =
      tenon::profile_record(activity.kind == Kind::kKernel ? TENON_PROFILE_KERNEL
                            : activity.kind == Kind::kCopy ? TENON_PROFILE_COPY
                                                           : TENON_PROFILE_FILL,
                            activity.name ? activity.name : "", activity.bytes, nullptr);
  record.begin_ns = activity.begin_ns;
  record.end_ns = activity.end_ns;
  State& self = state();
  const std::lock_guard lock(self.mutex);
  const auto call = self.call_of.find(activity.correlation);
  if (call != self.call_of.end())
    finish(self.calls[call->second - kFirstNumber], record);
  else
    wait(self, activity.correlation, record);
} catch (const std::bad_alloc&) {
}

void correlate(uint64_t correlation, uint64_t number) try {
  State& self = state();
  const std::lock_guard lock(self.mutex);
  const uint64_t index = number - kFirstNumber;
  if (index >= self.calls.size()) return;  // pushed by another library
  if (self.call_of.insert_or_assign(correlation, number).second)
    self.correlations.push_back(correlation);
  if (self.correlations.size() > kMaxCorrelations) {
    self.call_of.erase(self.correlations.front());
    self.correlations.pop_front();
  }
  const auto [first, last] = self.waiting.equal_range(correlation);
  for (auto each = first; each != last; ++each) finish(self.calls[index], each->second);
  self.waiting.erase(first, last);
} catch (const std::bad_alloc&) {
}

}  // namespace gpu::tracer
