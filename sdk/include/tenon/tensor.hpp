// SPDX-License-Identifier: Apache-2.0
// Owning tensor handle and error scope: the C++20 sugar that operator calls are written in.
#pragma once

#include <tenon/status.hpp>
#include <tenon/value.hpp>

#include <cstring>
#include <string_view>
#include <utility>

namespace tenon {

// One reference to a tensor; may be empty. Copy retains, destruction releases.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : handle_(other.handle_) {
    if (handle_) host->tensor_retain(handle_);
  }
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_) host->tensor_release(handle_);
  }

  static Tensor adopt(tenon_tensor* owned) {
    Tensor result;
    result.handle_ = owned;
    return result;
  }
  static Tensor borrow(tenon_tensor* borrowed) {
    if (borrowed) host->tensor_retain(borrowed);
    return adopt(borrowed);
  }

  tenon_tensor* get() const { return handle_; }
  tenon_tensor* release() { return std::exchange(handle_, nullptr); }
  // A tensor that a failed call did not make reads as one element without memory, so that code may
  // run to the end of its calls and check the scope there.
  tenon_tensor* operator->() const { return handle_ ? handle_ : &nothing_.tensor; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  struct Nothing {
    int64_t ones[TENON_MAX_NDIM] = {};
    tenon_tensor tensor = {};
    constexpr Nothing() {
      for (int64_t& one : ones) one = 1;
      tensor.shape = tensor.strides = ones;
      tensor.numel = 1;
    }
  };
  static Nothing nothing_;

  tenon_tensor* handle_ = nullptr;
};
inline constinit Tensor::Nothing Tensor::nothing_;

// A run of operator calls that stops at the first failure. After one, every further call made in
// the scope does nothing and returns an empty Tensor, so that expressions need no checks in
// between:
//
//   Scope scope(err);
//   Tensor y = ops::mul(scope, ops::sin(scope, x), 2.0);
//   if (!scope.ok()) return scope.status();
class Scope {
 public:
  explicit Scope(tenon_err* err) : err_(err) {}
  bool ok() const { return status_ == TENON_OK; }
  tenon_status status() const { return status_; }
  tenon_err* err() const { return err_; }
  // Remember a failure; returns true if `status` is TENON_OK and nothing failed before.
  bool check(tenon_status status) {
    if (status_ == TENON_OK) status_ = status;
    return status_ == TENON_OK;
  }
  void fail(tenon_status code, std::string_view text) { check(tenon::fail(err_, code, text)); }

 private:
  tenon_err* err_;
  tenon_status status_ = TENON_OK;
};

// Argument of a tensor parameter: a tensor, nothing, or a number (which becomes a weak 0-d scalar).
class TensorArg {
 public:
  TensorArg(const Tensor& tensor) : TensorArg(tensor.get()) {}
  TensorArg(tenon_tensor* tensor) : value_(boxed(tensor)) {
    if (!tensor) value_.tag = TENON_VALUE_NONE;
  }
  TensorArg(std::nullptr_t) : TensorArg(static_cast<tenon_tensor*>(nullptr)) {}
  TensorArg(double number) : value_(boxed(number)) {}
  TensorArg(int64_t number) : value_(boxed(number)) {}
  TensorArg(int number) : TensorArg(static_cast<int64_t>(number)) {}
  TensorArg(bool truth) : value_(boxed(truth)) {}
  TensorArg(const tenon_value& value) : value_(value) {}
  const tenon_value& value() const { return value_; }

 private:
  tenon_value value_;
};

}  // namespace tenon
