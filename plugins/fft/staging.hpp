// SPDX-License-Identifier: Apache-2.0
// Lines that are about a multiple of 4096 bytes apart share few sets of the first cache. pocketfft reads and
// writes one element of as many lines as a vector has elements at a time, which then evict each other.
// Such a part of a tensor is copied, line by line, from or to memory where lines are further apart.
#pragma once

#include <tenon/abi.h>

#include <cstdint>
#include <cstring>
#include <memory>

namespace tenon::fft {

// One side of a pass: memory, strides in bytes, the bytes of an element, and the extent along the axis.
struct Side {
  void* data = nullptr;
  int64_t strides[TENON_MAX_NDIM] = {};
  int64_t element = 0;
  int64_t length = 0;
};

class Staging {
 public:
  // `shape` is that of a part, at `side.data + offset`. Does nothing where lines are well apart.
  Staging(const Side& side, int64_t offset, int32_t ndim, const int64_t* shape, int32_t axis)
      : side_(side), memory_(static_cast<char*>(side.data) + offset), ndim_(ndim), axis_(axis) {
    int64_t apart = 0;
    for (int32_t i = 0; i < ndim; ++i) {
      extents_[i] = i == axis ? 1 : shape[i];
      lines_ *= extents_[i];
      if (extents_[i] > 1 && (apart == 0 || side.strides[i] < apart)) apart = side.strides[i];
    }
    const int64_t bytes = side.length * side.element;
    if (lines_ < kMinLines || (apart + kGap) % kPage >= 2 * kGap || apart < bytes ||
        side.strides[axis] != side.element)
      return;
    int64_t stride = bytes + 2 * kGap;
    const int64_t line = stride;
    for (int32_t i = ndim; i-- > 0;) {
      strides_[i] = i == axis ? side.element : stride;
      stride *= extents_[i];
    }
    // Uninitialised, which make_unique would not leave it.
    copy_.reset(new char[static_cast<size_t>(line * lines_)]);
  }
  void* data() const { return copy_ ? copy_.get() : memory_; }
  const int64_t* strides() const { return copy_ ? strides_ : side_.strides; }
  void load() const {
    for_lines([&](char* line, char* copy, size_t bytes) { std::memcpy(copy, line, bytes); });
  }
  void store() const {
    for_lines([&](char* line, char* copy, size_t bytes) { std::memcpy(line, copy, bytes); });
  }

 private:
  static constexpr int64_t kPage = 4096, kGap = 64, kMinLines = 4;

  template <class F>
  void for_lines(F f) const {
    if (!copy_) return;
    const auto bytes = static_cast<size_t>(side_.length * side_.element);
    for (int64_t index = 0; index < lines_; ++index) {
      int64_t from = 0, to = 0, rest = index;
      for (int32_t i = ndim_; i-- > 0; rest /= extents_[i]) {
        from += rest % extents_[i] * side_.strides[i];
        to += i == axis_ ? 0 : rest % extents_[i] * strides_[i];
      }
      f(memory_ + from, copy_.get() + to, bytes);
    }
  }

  const Side& side_;
  char* memory_;
  int32_t ndim_, axis_;
  int64_t extents_[TENON_MAX_NDIM], strides_[TENON_MAX_NDIM];
  int64_t lines_ = 1;
  std::unique_ptr<char[]> copy_;
};

}  // namespace tenon::fft
