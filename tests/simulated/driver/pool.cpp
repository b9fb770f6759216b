// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include "device.hpp"

namespace simulated {
namespace {

constexpr uint64_t kGranule = 4096;

}  // namespace

// The first free piece of the right size that this stream may use.
void* Pool::reuse(uint64_t bytes, Stream& stream) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->bytes != bytes || (it->stream != &stream && !it->ticket.passed())) continue;
    void* memory = it->memory;
    free_.erase(it);
    return memory;
  }
  return nullptr;
}

Error Pool::allocate(uint64_t bytes, Stream& stream, void** out) {
  if (bytes == 0) {
    *out = nullptr;
    return error::SUCCESS;
  }
  bytes = (bytes + kGranule - 1) & ~(kGranule - 1);
  std::lock_guard lock(mutex_);
  *out = reuse(bytes, stream);
  if (!*out) {
    Error error = device_.allocate(bytes, out);
    if (error == error::OUT_OF_MEMORY && !free_.empty()) {
      for (Free& each : free_) each.ticket.wait();
      release_unused(0);
      error = device_.allocate(bytes, out);
    }
    if (error) return error;
    reserved_ += bytes;
  }
  live_[*out] = bytes;
  used_ += bytes;
  return error::SUCCESS;
}

Error Pool::release(void* memory, Stream& stream) {
  if (!memory) return error::SUCCESS;
  // Part of a graph: the memory stays, because the graph will be launched again.
  if (stream.capture()) return error::SUCCESS;
  Ticket ticket = stream.tail();
  std::lock_guard lock(mutex_);
  auto found = live_.find(memory);
  if (found == live_.end()) return error::INVALID_VALUE;
  free_.push_back({memory, found->second, &stream, std::move(ticket)});
  used_ -= found->second;
  live_.erase(found);
  return error::SUCCESS;
}

bool Pool::owns(const void* memory) {
  std::lock_guard lock(mutex_);
  return live_.count(const_cast<void*>(memory)) != 0;
}

void Pool::release_unused(uint64_t keep) {
  for (auto it = free_.begin(); it != free_.end() && reserved_ > keep;) {
    if (!it->ticket.passed()) {
      ++it;
      continue;
    }
    device_.release(it->memory);
    reserved_ -= it->bytes;
    it = free_.erase(it);
  }
}

Error Pool::trim(uint64_t keep) {
  std::lock_guard lock(mutex_);
  release_unused(keep);
  return error::SUCCESS;
}

void Pool::forget_all() {
  std::lock_guard lock(mutex_);
  live_.clear();
  free_.clear();
  reserved_ = used_ = 0;
}

uint64_t Pool::reserved() {
  std::lock_guard lock(mutex_);
  return reserved_;
}

uint64_t Pool::used() {
  std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace simulated
