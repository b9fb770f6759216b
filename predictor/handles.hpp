// SPDX-License-Identifier: Apache-2.0
// Handles that callers of C hold. A handle is a number and no address, so that one that was freed, one of another kind
// and any stray pointer are found out.
#pragma once

#include <tenon/error.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::predictor {

// Objects of one kind by their handles: `Handle` is the opaque structure of the header. Any thread.
template <class T, class Handle>
class HandleTable {
 public:
  // `kind`: told in messages; `tag`, below 8, tells the handles of one table from those of others.
  constexpr HandleTable(const char* kind, uintptr_t tag) : kind_(kind), tag_(tag) {}

  Handle* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    size_t index = 0;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      if (slots_.size() >= kMaxObjects)
        throw Error(TENON_OUT_OF_MEMORY, std::string("expected at most 2^20 of ") + kind_ +
                                             " at once, got more; free those that are done");
      index = slots_.size();
      free_.reserve(index + 1);  // so that take() cannot fail
      slots_.emplace_back();
    }
    slots_[index].object = std::move(object);
    return reinterpret_cast<Handle*>(number_of(index));
  }

  // Throws Error for what is no handle of this table.
  std::shared_ptr<T> find(const Handle* handle) {
    const std::lock_guard lock(mutex_);
    return slots_[index_of(handle)].object;
  }

  // change(object) while no other thread reads or changes it.
  template <class Change>
  void change(const Handle* handle, Change&& change) {
    const std::lock_guard lock(mutex_);
    change(*slots_[index_of(handle)].object);
  }

  // The handle is none from here on. `is_free(object)` throws where the object cannot go.
  template <class Check>
  std::shared_ptr<T> take(const Handle* handle, Check&& is_free) {
    const std::lock_guard lock(mutex_);
    const size_t index = index_of(handle);
    is_free(*slots_[index].object);
    ++slots_[index].generation;
    free_.push_back(index);
    return std::move(slots_[index].object);
  }

 private:
  struct Slot {
    uintptr_t generation = 1;
    std::shared_ptr<T> object;
  };
  static constexpr unsigned kIndexBits = 20, kTagBits = 3;
  static constexpr size_t kMaxObjects = size_t{1} << kIndexBits;

  uintptr_t number_of(size_t index) const {
    return slots_[index].generation << (kIndexBits + kTagBits) | index << kTagBits | tag_;
  }
  size_t index_of(const Handle* handle) const {
    const auto number = reinterpret_cast<uintptr_t>(handle);
    const size_t index = number >> kTagBits & (kMaxObjects - 1);
    if (!handle)
      throw Error(TENON_INVALID_ARGUMENT,
                  std::string("expected a handle of ") + kind_ + ", got NULL");
    if (index >= slots_.size() || !slots_[index].object || number_of(index) != number)
      throw Error(TENON_INVALID_ARGUMENT,
                  std::string("expected a handle of ") + kind_ +
                      ", got one that was freed or was never made; create one, and free it once");
    return index;
  }

  const char* const kind_;
  const uintptr_t tag_;
  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<size_t> free_;
};

}  // namespace tenon::predictor
