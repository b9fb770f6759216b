// SPDX-License-Identifier: Apache-2.0
#include "executor.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace ascend {
namespace {

constexpr uintptr_t kAlignment = 32;

// Never that of an earlier thread, as the system's own number may be.
uint64_t thread_number() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = ++last;
  return number;
}

// Whether CANN is to compute deterministically in this process. Asking a context that was told nothing is an error.
int64_t determinism() {
  int64_t mode = 0;
  if (acl.aclrtGetSysParamOpt && acl.aclrtGetSysParamOpt(kDeterministic, &mode)) return -1;
  return mode;
}

}  // namespace

ExecutorKey::ExecutorKey(const void* function) {
  bytes_.reserve(1024);
  addresses_.reserve(8);
  add(reinterpret_cast<uintptr_t>(function));
  add(thread_number());
  add(determinism());
}

// Which tensors share an address belongs to the plan: CANN leaves out copies onto the same one.
void ExecutorKey::add(const Tensor& tensor) {
  add(tensor.is_none);
  addresses_.push_back(tensor.is_none ? nullptr : tensor.data);
  if (tensor.is_none) return;
  add(tensor.dtype);
  add(tensor.format);
  add(tensor.shape);
  add(tensor.strides);
  add(tensor.storage);
  add(std::find(addresses_.begin(), addresses_.end(), tensor.data) - addresses_.begin());
}

void ExecutorKey::add(const TensorList& list) {
  add(list.tensors.size());
  for (const Tensor& tensor : list.tensors) add(tensor);
}

void ExecutorKey::add(const Scalar& scalar) {
  add(scalar.dtype);
  append(scalar.bytes.data(), scalar.bytes.size());
}

void ExecutorKey::add(const IntArray& array) { add(array.values); }

void ExecutorKey::add(const BoolArray& array) { append(array.values.data(), sizeof array.values); }

void ExecutorKey::add(const char* text) {
  add(std::strlen(text));
  append(text, std::strlen(text));
}

void ExecutorKey::add(const std::vector<int64_t>& numbers) {
  add(numbers.size());
  append(numbers.data(), numbers.size() * sizeof(int64_t));
}

bool ExecutorKey::has_fitting_addresses() const {
  return std::all_of(addresses_.begin(), addresses_.end(), [](const void* address) {
    return reinterpret_cast<uintptr_t>(address) % kAlignment == 0;
  });
}

Executors::Entry* Executors::take(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || found->second->is_taken) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  entries_.front().is_taken = true;
  return &entries_.front();
}

// Not to wait for the stream: where those that retired last may be under way, the executor of this call runs once.
bool Executors::has_room(Stream stream) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() < executor_capacity()) return true;
  int status = 0;
  if (!retired_.empty() &&
      (acl.aclrtQueryEventStatus(retired_after_, &status) || status != kRecordedComplete))
    return false;
  end_retired();
  if (acl.aclrtCreateEventExWithFlag(&retired_after_, kEventSync)) return false;
  if (acl.aclrtRecordEvent(retired_after_, stream)) {
    end_retired();
    return false;
  }
  // Evicting entries one by one is expensive, so the older half is evicted together.
  auto next = std::next(entries_.begin(), static_cast<ptrdiff_t>(entries_.size() / 2));
  while (next != entries_.end()) {
    const auto entry = next++;
    if (entry->is_taken) continue;
    by_key_.erase(entry->key);
    retired_.splice(retired_.end(), entries_, entry);
  }
  return true;
}

void Executors::end_retired() {
  retired_.clear();
  if (retired_after_) acl.aclrtDestroyEvent(std::exchange(retired_after_, nullptr));
}

Executors::Entry* Executors::keep(const std::string& key, Executor executor) {
  const std::lock_guard lock(mutex_);
  entries_.push_front({key, std::move(executor)});
  by_key_[entries_.front().key] = entries_.begin();
  return &entries_.front();
}

void Executors::give_back(Entry* entry) {
  const std::lock_guard lock(mutex_);
  entry->is_taken = false;
}

void Executors::discard(Entry* entry) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(entry->key);
  discarded_.splice(discarded_.end(), entries_, found->second);
  by_key_.erase(found);
}

void Executors::clear() {
  const std::lock_guard lock(mutex_);
  by_key_.clear();
  entries_.clear();
  discarded_.clear();
  end_retired();
}

size_t executor_capacity() {
  static const size_t capacity = [] {
    const char* text = std::getenv("TENON_ASCEND_EXECUTORS");
    const bool can_repeat =
        acl.aclSetAclOpExecutorRepeatable && acl.aclSetTensorAddr && acl.aclDestroyAclOpExecutor;
    return text && can_repeat ? std::strtoull(text, nullptr, 10) : 0;
  }();
  return capacity;
}

}  // namespace ascend
