// SPDX-License-Identifier: Apache-2.0
// A vector of numbers that are few: up to N lie in the object itself. Shapes and the results of a step are such, and a
// program has some for each step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::graph {

template <class T, uint32_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(size_t count, T value = T{}) { resize(count, value); }
  SmallVector(std::initializer_list<T> list) { assign(list.begin(), list.end()); }
  SmallVector(const T* begin, const T* end) { assign(begin, end); }
  // NOLINTNEXTLINE(google-explicit-constructor): vectors are lists of axes, too.
  SmallVector(const std::vector<T>& other) { assign(other.data(), other.data() + other.size()); }
  SmallVector(const SmallVector& other) { assign(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  ~SmallVector() { drop(); }

  T* data() { return is_inside() ? inside_ : outside_; }
  const T* data() const { return is_inside() ? inside_ : outside_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void clear() { size_ = 0; }
  void push_back(T value) {
    if (size_ == room_) grow(size_t{room_} * 2);
    data()[size_++] = value;
  }
  void resize(size_t count, T value = T{}) {
    if (count > room_) grow(count);
    if (count > size_) std::fill(data() + size_, data() + count, value);
    size_ = static_cast<uint32_t>(count);
  }
  void assign(const T* first, const T* last) {
    const auto count = static_cast<size_t>(last - first);
    size_ = 0;
    if (count > room_) grow(count);
    if (count > 0) std::memcpy(data(), first, count * sizeof(T));
    size_ = static_cast<uint32_t>(count);
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  bool is_inside() const { return room_ == N; }
  void grow(size_t room) {
    T* grown = new T[room];
    std::memcpy(grown, data(), size_ * sizeof(T));
    drop();
    outside_ = grown;
    room_ = static_cast<uint32_t>(room);
  }
  void drop() {
    if (!is_inside()) delete[] outside_;
  }
  void take(SmallVector& other) {
    size_ = std::exchange(other.size_, 0);
    room_ = std::exchange(other.room_, N);
    if (is_inside())
      std::memcpy(inside_, other.inside_, sizeof inside_);
    else
      outside_ = other.outside_;
  }

  uint32_t size_ = 0, room_ = N;
  union {
    T inside_[N] = {};
    T* outside_;
  };
};

}  // namespace tenon::graph
