// SPDX-License-Identifier: Apache-2.0
// The objects of one kind that a library has given out as handles.
#pragma once

#include <map>
#include <memory>
#include <mutex>

namespace simulated {

template <class T>
class Objects {
 public:
  bool add(void** out, T value = {}) {
    if (!out) return false;
    auto object = std::make_unique<T>(value);
    std::lock_guard lock(mutex_);
    *out = object.get();
    all_[*out] = std::move(object);
    return true;
  }

  bool drop(void* handle) {
    std::lock_guard lock(mutex_);
    return all_.erase(handle) > 0;
  }

  // A copy, so that later changes by other threads do not matter.
  bool find(const void* handle, T* out) const {
    std::lock_guard lock(mutex_);
    const auto found = all_.find(handle);
    if (found == all_.end()) return false;
    *out = *found->second;
    return true;
  }

  // Calls change(object) under the lock. False: there is none of this handle.
  template <class F>
  bool change(const void* handle, const F& change) {
    std::lock_guard lock(mutex_);
    const auto found = all_.find(handle);
    if (found == all_.end()) return false;
    change(*found->second);
    return true;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::unique_ptr<T>> all_;
};

}  // namespace simulated
