// SPDX-License-Identifier: Apache-2.0
// What the parts of the device share: Tenon's host table, the device kind, and the way between tensors of both
// libraries.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Allocator.h>
#include <c10/util/SmallVector.h>
#include <tenon/abi.h>

#include <string>
#include <utility>

namespace tenon_torch {

// -- runtime.cpp ------------------------------------------------------------------------------------------

// The table of libtenon, after start().
extern const tenon_host* the_host;
inline const tenon_host& host() { return *the_host; }
// Opens `library`, which the process has loaded, and finds devices of `kind`. Called once.
void start(const std::string& library, const std::string& kind);
const std::string& kind();
int device_count();
tenon_device_id device_id(c10::DeviceIndex index);

// The calling thread's error sink, and the exceptions of PyTorch for what it says.
tenon_err* errors();
[[noreturn]] void raise(tenon_status status, const char* what);
inline void check(tenon_status status, const char* what) {
  if (status != TENON_OK) raise(status, what);
}

c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);

// While it lives, an index is the calling thread's current device.
class DeviceScope {
 public:
  explicit DeviceScope(c10::DeviceIndex index) : before_(current_device()) {
    if (index >= 0 && index != before_) set_current_device(index);
  }
  ~DeviceScope() {
    if (current_device() != before_) set_current_device(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  c10::DeviceIndex before_;
};

// A tensor of Tenon that is owned.
class Handle {
 public:
  Handle() = default;
  explicit Handle(tenon_tensor* owned) : tensor_(owned) {}
  Handle(Handle&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Handle() {
    if (tensor_) host().tensor_release(tensor_);
  }
  tenon_tensor* get() const { return tensor_; }
  tenon_tensor* release() { return std::exchange(tensor_, nullptr); }

 private:
  tenon_tensor* tensor_ = nullptr;
};

using Handles = c10::SmallVector<Handle, 2>;
// Results of the steps of a tape.
using Steps = c10::SmallVector<Handles, 2>;

// -- memory.cpp -------------------------------------------------------------------------------------------

// A TENON_DTYPE_ id, -1: Tenon has none.
int dtype_of(at::ScalarType type);

// A view of the memory of a strided tensor on the device or the CPU, which keeps a device's alive and borrows the CPU's.
Handle handle_of(const at::Tensor& tensor);
// The tensor of PyTorch that owns `handle`, whose memory nothing else has; memory that something else has is copied.
at::Tensor tensor_of(Handle handle);
// Memory of the CPU from which the device copies without a detour, where its plugin has such memory.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* data);
// Memory becomes larger or smaller; what fits stays.
void resize_storage(c10::StorageImpl& storage, size_t bytes);

// -- calls.cpp --------------------------------------------------------------------------------------------

// One call of an operator. `into`: where its only result is written, or null. Otherwise results are new.
Handles call(const tenon_op* op, tenon_value* values, uint32_t count, tenon_tensor* into);
const tenon_op* find_operator(const char* name);
inline tenon_value boxed(tenon_tensor* tensor) {
  tenon_value value{};
  value.tag = TENON_VALUE_TENSOR;
  value.v.p = tensor;
  return value;
}
inline tenon_value boxed_dtype(int dtype) {
  tenon_value value{};
  value.tag = TENON_VALUE_DTYPE;
  value.v.i = dtype;
  return value;
}

// -- device.cpp -------------------------------------------------------------------------------------------

// While it lives, calls on the device draw from the generator among `arguments`, if that is not the default one.
class GeneratorScope {
 public:
  explicit GeneratorScope(c10::ArrayRef<c10::IValue> arguments);
  ~GeneratorScope();
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  at::Generator generator_;
  tenon_device_id device_ = TENON_DEVICE_NONE;
  uint64_t seed_ = 0, offset_ = 0;
};

}  // namespace tenon_torch
