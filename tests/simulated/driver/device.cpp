// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../failures.hpp"

namespace simulated {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;

// Fresh memory of a device holds anything; a pattern that is NaN in every floating type shows its
// use.
constexpr int kPoison = 0xff;
constexpr uint64_t kPoisonedBytes = 8 * kMegabyte;  // at most: filling more would cost memory

struct Process {
  std::vector<Device*> devices;
  std::unique_ptr<Arena> host_memory;
  pid_t pid = 0;
};

std::mutex initialising;
std::atomic<Process*> process{nullptr};  // never destroyed: worker threads use it to the end

thread_local std::vector<Device*> stack;

}  // namespace

// A child of fork() has the memory of its parent, but none of the worker threads.
bool is_initialised() {
  const Process* all = process.load(std::memory_order_acquire);
  return all && all->pid == getpid();
}

Error init() {
  std::lock_guard lock(initialising);
  if (process) return is_initialised() ? error::SUCCESS : error::NOT_INITIALIZED;
  auto* all = new Process;
  all->pid = getpid();
  all->host_memory =
      std::make_unique<Arena>(environment("SIMULATED_HOST_MEMORY_MB", 4096) * kMegabyte, 0, true);
  const uint64_t bytes = environment("SIMULATED_MEMORY_MB", 2048) * kMegabyte;
  const int count = static_cast<int>(environment("SIMULATED_DEVICES", 2));
  for (int i = 0; i < count; ++i) all->devices.push_back(new Device(i, bytes));
  process.store(all, std::memory_order_release);
  return error::SUCCESS;
}

const std::vector<Device*>& devices() { return process.load(std::memory_order_acquire)->devices; }

Arena& host_memory() { return *process.load(std::memory_order_acquire)->host_memory; }

std::vector<Device*>& context_stack() { return stack; }

Device* current() {
  if (!stack.empty()) return stack.back();
  return SIMULATED_HIP && !devices().empty() ? devices()[0] : nullptr;
}

void set_current(Device* device) {
  if (!stack.empty()) stack.pop_back();
  if (device) stack.push_back(device);
}

Device* device_of(const void* memory) {
  for (Device* device : devices())
    if (device->memory.contains(memory)) return device;
  return nullptr;
}

char* access(const void* memory, uint64_t bytes) {
  if (Device* device = device_of(memory)) return device->memory.access(memory, bytes);
  return host_memory().access(memory, bytes);
}

Device::Device(int ordinal, uint64_t bytes) : ordinal(ordinal), memory(bytes, bytes, false) {}

std::string Device::architecture() const {
  const char* chosen = std::getenv("SIMULATED_ARCHITECTURE");
  return chosen && *chosen ? chosen : SIMULATED_HIP ? "gfx90a" : "sm_90";
}

std::string Device::name() const { return "Simulated " + architecture(); }

Error Device::allocate(uint64_t bytes, void** out) {
  void* memory_at = memory.allocate(bytes);
  if (!memory_at) return error::OUT_OF_MEMORY;
  void* base;
  uint64_t whole;
  memory.find(memory_at, &base, &whole);
  static const bool poison = environment("SIMULATED_POISON", 1) != 0;
  if (poison) std::memset(memory.access(base, whole), kPoison, std::min(whole, kPoisonedBytes));
  if (has_process()) TRY(process_->map(base, whole));
  *out = memory_at;
  return error::SUCCESS;
}

Error Device::release(void* address) {
  void* base;
  uint64_t bytes;
  if (!memory.find(address, &base, &bytes) || base != address) return error::INVALID_VALUE;
  wait_for_all();
  // A kernel that still uses the address gets an error, as it would from a GPU.
  if (has_process()) TRY(process_->unmap(base, bytes));
  return memory.release(base) ? error::SUCCESS : error::INVALID_VALUE;
}

void Device::wait_for_all() {
  std::vector<std::shared_ptr<Stream>> all;
  {
    std::lock_guard lock(mutex_);
    all = streams_;
    if (default_) all.push_back(default_);
  }
  for (const auto& stream : all)
    if (!stream->capture()) stream->tail().wait();
}

std::shared_ptr<Stream> Device::create_stream(unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>(*this, flags, priority, false);
  std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  return stream;
}

void Device::forget_stream(const std::shared_ptr<Stream>& stream) {
  std::lock_guard lock(mutex_);
  std::erase(streams_, stream);
}

std::shared_ptr<Stream> Device::default_stream() {
  std::lock_guard lock(mutex_);
  if (!default_) default_ = std::make_shared<Stream>(*this, 0, 0, true);
  return default_;
}

void Device::order_with_default_stream(Stream& stream) {
  std::vector<Ticket> before;
  {
    std::lock_guard lock(mutex_);
    if (!stream.is_legacy) {
      if (default_) before.push_back(default_->tail());
    } else {
      for (const auto& each : streams_)
        if (!(each->flags & Stream::kNonBlocking) && !each->capture())
          before.push_back(each->tail());
    }
  }
  std::erase_if(before, [](const Ticket& ticket) { return ticket.passed(); });
  if (before.empty()) return;
  stream.push([before = std::move(before)]() -> Error {
    for (const Ticket& ticket : before) ticket.wait();
    return error::SUCCESS;
  });
}

bool Device::has_process() {
  std::lock_guard lock(process_mutex_);
  return process_ != nullptr;
}

Error Device::process(DeviceProcess** out) {
  std::lock_guard lock(process_mutex_);
  if (!process_) process_ = DeviceProcess::start(memory, host_memory());
  *out = process_.get();
  return process_ ? error::SUCCESS : error::OPERATING_SYSTEM;
}

// With SIMULATED_PEERS=1 every device, otherwise none. CUDA's copies work either way.
bool Device::can_access(const Device& peer) const {
  static const bool all = environment("SIMULATED_PEERS", 0) != 0;
  return all && &peer != this;
}

Error Device::enable_peer(const Device& peer) {
  if (!can_access(peer)) return error::PEER_ACCESS_UNSUPPORTED;
  std::lock_guard lock(mutex_);
  return peers_.insert(peer.ordinal).second ? error::SUCCESS : error::PEER_ACCESS_ALREADY_ENABLED;
}

bool Device::has_peer(const Device& peer) {
  std::lock_guard lock(mutex_);
  return peers_.count(peer.ordinal) != 0;
}

void Device::lose(Error error) {
  Error none = 0;
  lost_.compare_exchange_strong(none, error);
}

void Device::reset() {
  wait_for_all();
  {
    std::lock_guard lock(process_mutex_);
    process_ = nullptr;
  }
  {
    std::lock_guard lock(mutex_);
    peers_.clear();
  }
  pool.forget_all();
  memory.release_all();
  lost_ = 0;
}

}  // namespace simulated
