// SPDX-License-Identifier: Apache-2.0
// paddle::optional<T>: a value or paddle::none. C++14, for plugins that are built as such.
#pragma once

#include <paddle/utils/none.h>

#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace paddle {

template <typename T>
class optional {
 public:
  using value_type = T;

  optional() = default;
  optional(none_t) {}                                 // NOLINT: implicit, as authors expect
  optional(const T& value) { emplace(value); }        // NOLINT
  optional(T&& value) { emplace(std::move(value)); }  // NOLINT
  optional(const optional& other) {
    if (other.engaged_) emplace(*other);
  }
  optional(optional&& other) noexcept(std::is_nothrow_move_constructible<T>::value) {
    if (other.engaged_) emplace(std::move(*other));
  }
  template <typename U>
  explicit optional(const optional<U>& other) {
    if (other) emplace(*other);
  }
  ~optional() { reset(); }

  optional& operator=(none_t) {
    reset();
    return *this;
  }
  optional& operator=(const optional& other) {
    if (this != &other) {
      optional copy(other);
      *this = std::move(copy);
    }
    return *this;
  }
  optional& operator=(optional&& other) noexcept(std::is_nothrow_move_constructible<T>::value) {
    if (this != &other) {
      reset();
      if (other.engaged_) emplace(std::move(*other));
    }
    return *this;
  }

  template <typename... Args>
  T& emplace(Args&&... args) {
    reset();
    T* made = new (static_cast<void*>(&storage_)) T(std::forward<Args>(args)...);
    engaged_ = true;
    return *made;
  }
  void reset() {
    if (!engaged_) return;
    engaged_ = false;
    address()->~T();
  }
  void swap(optional& other) { std::swap(*this, other); }

  bool is_initialized() const { return engaged_; }
  bool has_value() const { return engaged_; }
  explicit operator bool() const { return engaged_; }
  bool operator!() const { return !engaged_; }

  // NULL: none.
  T* get_ptr() { return engaged_ ? address() : nullptr; }
  const T* get_ptr() const { return engaged_ ? address() : nullptr; }

  T& get() { return *checked(); }
  const T& get() const { return *const_cast<optional*>(this)->checked(); }
  T& value() { return get(); }
  const T& value() const { return get(); }
  T& operator*() { return get(); }
  const T& operator*() const { return get(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<optional*>(this)->checked(); }
  T get_value_or(const T& fallback) const { return engaged_ ? get() : fallback; }

 private:
  T* address() { return reinterpret_cast<T*>(&storage_); }
  const T* address() const { return reinterpret_cast<const T*>(&storage_); }
  T* checked() {
    if (!engaged_)
      throw std::logic_error("paddle::optional: expected a value, got none; test it before use");
    return address();
  }

  typename std::aligned_storage<sizeof(T), alignof(T)>::type storage_;
  bool engaged_ = false;
};

template <typename T>
optional<typename std::decay<T>::type> make_optional(T&& value) {
  return optional<typename std::decay<T>::type>(std::forward<T>(value));
}
template <typename T>
optional<T> make_optional(bool condition, const T& value) {
  return condition ? optional<T>(value) : optional<T>();
}
template <typename T>
T* get_pointer(optional<T>& value) {
  return value.get_ptr();
}
template <typename T>
const T* get_pointer(const optional<T>& value) {
  return value.get_ptr();
}

template <typename T>
bool operator==(const optional<T>& value, none_t) {
  return !value;
}
template <typename T>
bool operator!=(const optional<T>& value, none_t) {
  return static_cast<bool>(value);
}

}  // namespace paddle
