// SPDX-License-Identifier: Apache-2.0
// One call of a CBLAS function by a kernel: what the kernels that are generated from blas.yaml make their parameters with.
#pragma once

#include <tenon/unbox.h>
#include <tenon/plugin.hpp>

#include <cstring>
#include <utility>

namespace bound_blas {

struct Function {
  const char* name;  // "cblas_sgemm"
  void* address = nullptr;
};

class Call {
 public:
  Call(tenon_ctx*, const char* op, const Function& function, tenon_err* err)
      : op_(op), function_(function), err_(err) {}

  template <class T>
  T* data(const tenon_value& value) const {
    return static_cast<T*>(tenon_arg_tensor(&value)->data);
  }
  // A function that works in place: the result begins as a copy of `from`.
  template <class T>
  T* copied(const tenon_value& out, const tenon_value& from) const {
    std::memcpy(data<T>(out), data<T>(from), static_cast<size_t>(numel(from)) * sizeof(T));
    return data<T>(out);
  }
  int64_t numel(const tenon_value& value) const { return tenon_arg_tensor(&value)->numel; }
  int64_t dim(const tenon_value& value, int axis) const {
    return tenon_arg_tensor(&value)->shape[axis];
  }
  template <class T>
  T narrow(int64_t value) {  // CBLAS counts in 32 bits
    if (!std::in_range<T>(value)) status_ = TENON_UNSUPPORTED;
    return static_cast<T>(value);
  }

  template <class... Parameters>
  tenon_status run(Parameters... parameters) {
    if (status_) return too_large();
    reinterpret_cast<void (*)(Parameters...)>(function_.address)(parameters...);
    return TENON_OK;
  }
  // Of a function that returns the result, as a T.
  template <class T, class... Parameters>
  tenon_status run_into(const tenon_value& out, Parameters... parameters) {
    return run_into_as<T, T>(out, parameters...);
  }
  // As a type of another width: `double` of cblas_dsdot, whose result is a float32 here.
  template <class T, class Returned, class... Parameters>
  tenon_status run_into_as(const tenon_value& out, Parameters... parameters) {
    if (status_) return too_large();
    *data<T>(out) = static_cast<T>(
        reinterpret_cast<Returned (*)(Parameters...)>(function_.address)(parameters...));
    return TENON_OK;
  }

 private:
  tenon_status too_large() const {
    return tenon::fail_format(err_, status_, "[%s] %s takes extents below 2^31", op_,
                              function_.name);
  }

  const char* op_;
  const Function& function_;
  tenon_err* err_;
  tenon_status status_ = TENON_OK;
};

// Empty tensors are left to the kernels of the device.
inline bool takes_shapes(const tenon_value* args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; ++i)
    if (args[i].tag == TENON_VALUE_TENSOR && tenon_arg_tensor(&args[i])->numel == 0) return false;
  return true;
}

}  // namespace bound_blas
