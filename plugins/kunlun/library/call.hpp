// SPDX-License-Identifier: Apache-2.0
// One call of an XDNN function by a kernel. The kernels are generated from bindings/*.yaml; each makes the
// parameters with the methods below and hands them to run(), whose types are those of the function.
//
// XDNN is a library of C++, whose binary interface no header of C fixes. What keeps that safe:
// - A function is looked up by its mangled name, which spells the types of all its parameters. A version
//   with other parameters has no such symbol, and the operator is off.
// - The only object that crosses is std::vector by const reference, of the libstdc++ that both sides use (the
//   mangled name says so: libc++ calls it std::__1::vector).
// - Context is made and destroyed by the library, and never looked into. Its stream is a member that only inline
//   code of the header writes, and whose offset differs between versions: so all operators run on the
//   device's default stream, after what the stream of the call was given before.
#pragma once

#include <tenon/unbox.h>

#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/device.hpp"

namespace kunlun {

struct Function {
  const char* name;    // "broadcast_add<float>"
  const char* symbol;  // mangled
  void* address = nullptr;
};

// Looks the function up, and returns false if this version of the library has none.
bool find_function(Function& function);

class Call {
 public:
  Call(tenon_ctx* ctx, const char* op, const Function& function, tenon_err* err)
      : op_(op),
        function_(function),
        err_(err),
        device_(host->ctx_device(ctx)),
        lock_(device_->mutex) {
    stream_ = host->ctx_stream(ctx);
    status_ = make_current(device_, err);
    if (stream_ && !status_) follow(stream_);
  }
  Call(const Call&) = delete;

  // Parameters of XDNN functions, owned by this object. After a failure run() returns it.
  Context* context();
  template <class T>
  T* data(const tenon_value& value);  // NONE: nullptr
  template <class T>
  const std::vector<T*>& pointers(const tenon_value& tensors);
  const std::vector<int64_t>& shape(const tenon_value& tensor);
  // With as many axes as `like`: functions that broadcast take shapes of equal length.
  const std::vector<int64_t>& shape(const tenon_value& tensor, const tenon_value& like);
  // {numel, 1}: the shape of a list of indices of one axis.
  const std::vector<int64_t>& column(const tenon_value& tensor) { return list({numel(tensor), 1}); }
  const std::vector<int64_t>& window(
      const tenon_value& weight);  // the shape after the first two axes
  const std::vector<std::vector<int64_t>>& shapes(const tenon_value& tensors);
  const std::vector<int64_t>& ints(const tenon_value& value);
  // One integer stands for `count` of them.
  const std::vector<int64_t>& ints(const tenon_value& value, size_t count);
  const std::vector<int64_t>& axes(const tenon_value& value,
                                   const tenon_value& tensor);  // NONE: all
  const std::vector<int64_t>& list(std::initializer_list<int64_t> values) {
    return vectors_.emplace_back(values);
  }
  int64_t axis(const tenon_value& value, const tenon_value& tensor) const;
  int64_t dim(const tenon_value& tensor, int axis) const;
  int64_t matrix(const tenon_value& tensor) const {  // elements of the last two axes
    return dim(tensor, -2) * dim(tensor, -1);
  }
  int64_t numel(const tenon_value& tensor) const { return tenon_arg_tensor(&tensor)->numel; }
  int64_t integer(const tenon_value& value) const {
    return value.tag == TENON_VALUE_FLOAT ? static_cast<int64_t>(value.v.f) : value.v.i;
  }
  template <class T>
  T narrow(int64_t value) {  // for a parameter of fewer bits
    if (!std::in_range<T>(value)) refuse(value, sizeof(T));
    return static_cast<T>(value);
  }
  double number(const tenon_value& value) const {
    return value.tag == TENON_VALUE_FLOAT ? value.v.f : static_cast<double>(value.v.i);
  }

  // Calls the function and waits: its work is on the default stream.
  template <class... Parameters>
  tenon_status run(Parameters&&... parameters) {
    if (status_ || !has_work_) return status_;
    using Pointer = int (*)(Parameters...);
    Profile::Scope profile(device_, stream_, TENON_PROFILE_KERNEL);
    if (const int error = reinterpret_cast<Pointer>(function_.address)(parameters...))
      return fail(error);
    const tenon_status status = wait();
    if (!status) profile.finish(function_.name);
    return status;
  }

 private:
  const void* typed(const tenon_tensor* tensor, int dtype);
  std::vector<int64_t>& vector() { return vectors_.emplace_back(); }
  void refuse(int64_t value, size_t bytes);
  tenon_status fail(int error);
  tenon_status wait();
  void follow(tenon_stream stream);  // what it was given has finished

  const char* op_;
  const Function& function_;
  tenon_err* err_;
  tenon_device device_;
  tenon_stream stream_ = nullptr;
  std::lock_guard<std::mutex> lock_;  // a Context serves one thread at a time
  tenon_status status_ = TENON_OK;
  bool has_work_ = true;  // the result has elements
  std::deque<std::vector<int64_t>> vectors_;
  std::vector<std::vector<int64_t>> shapes_;
  std::deque<std::vector<const void*>> pointers_;
};

// The dtype of a type of the prototypes.
template <class T>
inline constexpr int kDtype = -1;
template <>
inline constexpr int kDtype<float> = TENON_DTYPE_F32;
template <>
inline constexpr int kDtype<float16> = TENON_DTYPE_F16;
template <>
inline constexpr int kDtype<bfloat16> = TENON_DTYPE_BF16;
template <>
inline constexpr int kDtype<int8_t> = TENON_DTYPE_I8;
template <>
inline constexpr int kDtype<uint8_t> = TENON_DTYPE_U8;
template <>
inline constexpr int kDtype<int16_t> = TENON_DTYPE_I16;
template <>
inline constexpr int kDtype<int> = TENON_DTYPE_I32;
template <>
inline constexpr int kDtype<int64_t> = TENON_DTYPE_I64;
template <>
inline constexpr int kDtype<bool> = TENON_DTYPE_BOOL;

template <class T>
T* Call::data(const tenon_value& value) {
  if (status_ || value.tag == TENON_VALUE_NONE) return nullptr;
  if (!std::is_const_v<T> && tenon_arg_tensor(&value)->numel == 0) has_work_ = false;
  const int dtype = kDtype<std::remove_const_t<T>>;
  return static_cast<T*>(const_cast<void*>(typed(tenon_arg_tensor(&value), dtype)));
}

template <class T>
const std::vector<T*>& Call::pointers(const tenon_value& tensors) {
  std::vector<const void*>& list = pointers_.emplace_back();
  for (uint32_t i = 0; i < tenon_arg_count(&tensors); ++i)
    list.push_back(typed(tenon_arg_tensors(&tensors)[i], kDtype<std::remove_const_t<T>>));
  // Vectors of pointers differ in their type alone.
  return reinterpret_cast<const std::vector<T*>&>(list);
}

// What an empty tensor is to XDNN no header says, so that those calls are lowered or run on the host.
bool takes_shapes(const tenon_value* args, uint32_t nargs);

}  // namespace kunlun
