// SPDX-License-Identifier: Apache-2.0
// One launch: arguments in the order of the kernel's parameters, then how many work items. Lives on
// the stack; nothing is allocated.
#pragma once

#include "device.hpp"

#include <cstring>
#include <type_traits>

namespace tenon::kernel_c {

class Launch {
 public:
  Launch(tenon_ctx* ctx, Device& device, tenon_err* err) : ctx_(ctx), device_(device), err_(err) {}
  Launch(const Launch&) = delete;

  Device& device() const { return device_; }

  void buffer(const tenon_tensor* tensor, int64_t elements = 0);  // from that element on
  void buffer(void* scratch);
  void value(const void* data, uint32_t bytes);
  template <class T>
  void value(const T& data) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 64);
    value(&data, sizeof data);
  }
  // A number as the compute type of a dtype.
  void number(int dtype, const tenon_value& value);

  // As many work items as serve `elements` well when each loops over its share. `cost`: of one, in
  // simple operations.
  tenon_status run(tenon_kernel kernel, int64_t elements, int64_t cost = 1);
  // One group of `size` items, or as many, for each of `groups`, up to a bound; kernels loop.
  tenon_status run_groups(tenon_kernel kernel, int64_t groups, uint32_t size);
  tenon_status run_exactly(tenon_kernel kernel, const uint32_t (&groups)[3],
                           const uint32_t (&size)[3]);

 private:
  static constexpr uint32_t kMax = 64;
  static constexpr uint32_t kValueBytes = 1536;

  tenon_ctx* ctx_;
  Device& device_;
  tenon_err* err_;
  uint32_t count_ = 0, used_ = 0;
  tenon_launch_arg args_[kMax];
  alignas(16) char values_[kValueBytes];
};

}  // namespace tenon::kernel_c
