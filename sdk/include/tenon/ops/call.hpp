// SPDX-License-Identifier: Apache-2.0
// What generated operator functions (tenon/ops.hpp) are made of: argument types and the call
// itself.
#pragma once

#include <tenon/tensor.hpp>

#include <array>
#include <atomic>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tenon {

// A list borrowed for the duration of a call: from {1, 2}, a vector, or pointer and length.
template <class T>
class List {
 public:
  List() = default;
  List(const T* data, uint64_t size) : data_(data), size_(size) {}
  List(const std::vector<T>& items) : List(items.data(), items.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Winit-list-lifetime"  // alive until the end of the calling expression
#endif
  List(std::initializer_list<T> items) : List(items.begin(), items.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  const T* data() const { return data_; }
  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](uint64_t i) const { return data_[i]; }
  std::vector<T> vector() const { return {begin(), end()}; }

  tenon_value value() const { return boxed(data_, size_); }

 private:
  const T* data_ = nullptr;
  uint64_t size_ = 0;
};
using IntList = List<int64_t>;
using FloatList = List<double>;

// A list or none ({} and std::nullopt). A lone number is a list of one.
template <class T>
class OptionalList {
 public:
  OptionalList() = default;
  OptionalList(std::nullopt_t) {}
  OptionalList(List<T> list) : list_(list), form_(kList) {}
  OptionalList(const std::optional<List<T>>& list) {
    if (list) *this = OptionalList(*list);
  }
  OptionalList(const std::vector<T>& items) : OptionalList(List<T>(items)) {}
  OptionalList(std::initializer_list<T> items) : OptionalList(List<T>(items)) {}
  template <class Number>
  requires std::is_arithmetic_v<Number> OptionalList(Number number)
      : lone_(static_cast<T>(number)), form_(kLone) {}

  bool has_value() const { return form_ != kNone; }
  explicit operator bool() const { return has_value(); }
  // Valid while this object lives.
  List<T> operator*() const { return form_ == kLone ? List<T>(&lone_, 1) : list_; }

  tenon_value value() const {
    tenon_value value = list_.value();
    if (form_ == kNone) value = kNoValue;
    if (form_ == kLone) value = boxed(lone_);
    return value;
  }

 private:
  enum Form { kNone, kLone, kList };
  List<T> list_;
  T lone_{};
  Form form_ = kNone;
};
using OptionalInts = OptionalList<int64_t>;
using OptionalFloats = OptionalList<double>;

// A number that keeps its kind: int, float or bool.
class ScalarArg {
 public:
  ScalarArg(double number) : value_(boxed(number)) {}
  ScalarArg(int64_t number) : value_(boxed(number)) {}
  ScalarArg(int number) : ScalarArg(static_cast<int64_t>(number)) {}
  ScalarArg(bool truth) : value_(boxed(truth)) {}
  ScalarArg(const tenon_value& value) : value_(value) {}
  const tenon_value& value() const { return value_; }
  bool is_float() const { return value_.tag == TENON_VALUE_FLOAT || is_complex(); }
  bool is_complex() const { return value_.tag == TENON_VALUE_COMPLEX; }
  // NaN for a complex number: the arithmetic of attributes is real.
  double number() const {
    if (is_complex()) return std::numeric_limits<double>::quiet_NaN();
    return is_float() ? value_.v.f : static_cast<double>(value_.v.i);
  }

 private:
  tenon_value value_;
};

// Tensors for a Tensor[] parameter, borrowed for the duration of a call.
class TensorList {
 public:
  TensorList() = default;
  TensorList(tenon_tensor* const* data, uint64_t size) : data_(data), size_(size) {}
  TensorList(const std::vector<Tensor>& tensors)
      : TensorList(reinterpret_cast<tenon_tensor* const*>(tensors.data()), tensors.size()) {}
  TensorList(std::initializer_list<Tensor> tensors)
      : TensorList(reinterpret_cast<tenon_tensor* const*>(tensors.begin()), tensors.size()) {}

  uint64_t size() const { return size_; }
  tenon_tensor* operator[](uint64_t i) const { return data_[i]; }
  tenon_value value() const { return boxed(data_, size_); }

 private:
  static_assert(sizeof(Tensor) == sizeof(tenon_tensor*));
  tenon_tensor* const* data_ = nullptr;
  uint64_t size_ = 0;
};

namespace call {

// An operator found by name at its first call; operators live as long as the host.
class Operator {
 public:
  constexpr explicit Operator(const char* name) : name_(name) {}

  // Does nothing if an earlier call in the scope failed.
  bool run(Scope& scope, tenon_value* args, uint32_t nargs, tenon_value* outs, uint32_t nouts) {
    if (!scope.ok()) return false;
    const tenon_op* op = op_.load(std::memory_order_acquire);
    if (!op) {
      op = host->op_find(name_);
      if (!op) return not_found(scope);
      op_.store(op, std::memory_order_release);
    }
    return scope.check(host->op_call(op, args, nargs, outs, nouts, scope.err()));
  }

 private:
  [[gnu::cold]] bool not_found(Scope& scope) const {
    scope.fail(TENON_NOT_FOUND, std::string("operator ") + name_ +
                                    " is not registered; load the plugin that defines it");
    return false;
  }

  const char* name_;
  std::atomic<const tenon_op*> op_{nullptr};
};

// Results allocated by the host. All empty if the call fails.
template <size_t N>
std::array<Tensor, N> results(Scope& scope, Operator& op, tenon_value* args, uint32_t nargs) {
  tenon_value outs[N];
  for (tenon_value& out : outs) out = kNoValue;
  std::array<Tensor, N> tensors;
  if (op.run(scope, args, nargs, outs, N))
    for (size_t i = 0; i < N; ++i)
      tensors[i] = Tensor::adopt(static_cast<tenon_tensor*>(outs[i].v.p));
  return tensors;
}

inline Tensor result(Scope& scope, Operator& op, tenon_value* args, uint32_t nargs) {
  tenon_value out = kNoValue;
  if (!op.run(scope, args, nargs, &out, 1)) return {};
  return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
}

inline std::vector<Tensor> list(Scope& scope, Operator& op, tenon_value* args, uint32_t nargs) {
  tenon_value out = kNoValue;
  std::vector<Tensor> tensors;
  if (!op.run(scope, args, nargs, &out, 1)) return tensors;
  tenon_tensor** array = static_cast<tenon_tensor**>(out.v.p);
  for (uint32_t i = 0; i < out.aux; ++i) tensors.push_back(Tensor::borrow(array[i]));
  host->list_release(array, out.aux);
  return tensors;
}

// In-place and out= forms: results are written into tensors that the caller owns.
template <size_t N>
void into(Scope& scope, Operator& op, tenon_value* args, uint32_t nargs,
          const std::array<tenon_tensor*, N>& tensors) {
  tenon_value outs[N];
  for (size_t i = 0; i < N; ++i) outs[i] = boxed(tensors[i]);
  op.run(scope, args, nargs, outs, N);
}

// Generated functions box every argument as call::boxed(argument).
using ::tenon::boxed;
using ::tenon::boxed_device;
using ::tenon::boxed_dtype;
inline tenon_value boxed(const ScalarArg& scalar) { return scalar.value(); }
template <class T>
tenon_value boxed(const std::optional<T>& value) {
  return value ? boxed(*value) : kNoValue;
}
}  // namespace call
}  // namespace tenon
