// SPDX-License-Identifier: Apache-2.0
// Helpers of hand-written kernels: typed access to tensors, error texts, and the detour of low
// precision dtypes through float32.
#pragma once

#include <tenon/parallel.hpp>
#include "dtypes.hpp"
#include "elementwise/low_precision.hpp"
#include "table.hpp"

#include <tenon/tensor.hpp>

#include <tuple>

namespace tenon::cpu {

inline constexpr uint32_t kAnyStrides = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT;

template <class T>
inline T* data_of(const tenon_tensor* tensor) {
  return static_cast<T*>(tensor->data);
}

// A 0-d tensor counts as one with a single axis.
inline int64_t normalize_axis(int64_t axis, int ndim) {
  return axis < 0 ? axis + (ndim > 1 ? ndim : 1) : axis;
}

// A tensor seen as [outer, length, inner] around one axis; a 0-d tensor has length 1.
struct AxisView {
  int64_t outer = 1, length = 1, inner = 1;
  AxisView(const tenon_tensor* tensor, int64_t axis) {
    axis = normalize_axis(axis, tensor->ndim);
    for (int i = 0; i < tensor->ndim; ++i) {
      (i < axis ? outer : i == axis ? length : inner) *= tensor->shape[i];
    }
  }
};

// A number of any kind as T.
template <class T>
inline T scalar_as(const tenon_value& value) {
  if (value.tag == TENON_VALUE_FLOAT) return static_cast<T>(value.v.f);
  if (value.tag == TENON_VALUE_COMPLEX) {
    const double* parts = static_cast<const double*>(value.v.p);
    if constexpr (requires { typename T::value_type; }) {
      using Part = typename T::value_type;
      return T(static_cast<Part>(parts[0]), static_cast<Part>(parts[1]));
    } else {
      return static_cast<T>(parts[0]);
    }
  }
  if constexpr (requires { typename T::value_type; }) {
    return T(static_cast<typename T::value_type>(value.v.i));
  } else {
    return static_cast<T>(value.v.i);
  }
}

// The kernel is chosen only for calls whose arguments `can_run` accepts.
constexpr tenon_kernel_def with_can_run(tenon_kernel_def kernel,
                                        int32_t (*can_run)(const tenon_value*, uint32_t)) {
  kernel.can_run = can_run;
  return kernel;
}

}  // namespace tenon::cpu

namespace tenon::cpu::TENON_CPU_ISA {

// Holds float32 copies, in scratch memory, of the tensors of one call that have a low precision
// dtype.
class Float32Call {
 public:
  Float32Call(tenon_ctx* ctx, tenon_err* err) : ctx_(ctx), err_(err) {}
  // Returns the tensor to pass to the kernel. Inputs are converted at once, outputs by finish();
  // every other argument is passed on unchanged.
  const tenon_tensor* argument(const tenon_tensor* input);
  tenon_tensor* argument(tenon_tensor* output);
  template <class T>
  T argument(T other) {
    return other;
  }
  tenon_status status() const { return status_; }
  tenon_status finish(tenon_status of_kernel);

 private:
  tenon_tensor* copy_of(const tenon_tensor* tensor);

  static constexpr int kMaxTensors = 12;
  tenon_ctx* ctx_;
  tenon_err* err_;
  tenon_status status_ = TENON_OK;
  int count_ = 0;
  tenon_tensor copies_[kMaxTensors];
  tenon_tensor* outputs_[kMaxTensors] = {};
};

// Runs a typed kernel for float32 on contiguous tensors of a low precision dtype. Usage:
//
// if (is_low_precision(x->dtype)) return run_as_float32(softmax, ctx, err, x, axis, out);
template <class Kernel, class... Arguments>
inline tenon_status run_as_float32(Kernel kernel, tenon_ctx* ctx, tenon_err* err,
                                   Arguments... arguments) {
  Float32Call call(ctx, err);
  const std::tuple<Arguments...> converted{call.argument(arguments)...};
  if (call.status() != TENON_OK) return call.status();
  return call.finish(
      std::apply([&](auto... each) { return kernel(ctx, each..., err); }, converted));
}

}  // namespace tenon::cpu::TENON_CPU_ISA
