// SPDX-License-Identifier: Apache-2.0
// A cache of what was made for recent lengths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tenon::fft {

// Holds the last kCapacity values. Any thread may ask; making one takes no lock, so that two threads may
// make the same one, of which the first is kept.
template <class Value>
class Recent {
 public:
  template <class Make>
  std::shared_ptr<const Value> get(int64_t length, Make make) {
    if (auto found = find(length)) return found;
    std::shared_ptr<const Value> made = make();
    const std::lock_guard lock(mutex_);
    if (auto found = find_locked(length)) return found;
    if (entries_.size() == kCapacity) entries_.erase(entries_.begin());
    entries_.emplace_back(length, made);
    return made;
  }

 private:
  static constexpr size_t kCapacity = 32;

  std::shared_ptr<const Value> find(int64_t length) {
    const std::lock_guard lock(mutex_);
    return find_locked(length);
  }
  // The entry becomes the last, which is dropped latest.
  std::shared_ptr<const Value> find_locked(int64_t length) {
    const auto at = std::find_if(entries_.rbegin(), entries_.rend(),
                                 [&](const auto& entry) { return entry.first == length; });
    if (at == entries_.rend()) return nullptr;
    std::rotate(at.base() - 1, at.base(), entries_.end());
    return entries_.back().second;
  }

  std::mutex mutex_;
  std::vector<std::pair<int64_t, std::shared_ptr<const Value>>> entries_;
};

}  // namespace tenon::fft
