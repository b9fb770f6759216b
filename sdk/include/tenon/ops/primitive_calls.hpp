// SPDX-License-Identifier: Apache-2.0
// The primitives as C++ functions, and the views that lowerings need between them. Calls name no
// generated header, so that the lowerings of any package can be written with them.
#pragma once

#include <tenon/primitives.h>
#include <tenon/ops/call.hpp>

#include <initializer_list>
#include <vector>

namespace tenon::primitive {

template <size_t N>
Tensor run(Scope& scope, call::Operator& op, const std::array<tenon_value, N>& args) {
  std::array<tenon_value, N> values = args;
  return call::result(scope, op, values.data(), N);
}

inline Tensor copy(Scope& scope, const TensorArg& x, int32_t dtype) {
  static constinit call::Operator op("primitive_copy");
  return run<2>(scope, op, {x.value(), call::boxed_dtype(dtype)});
}
inline Tensor unary(Scope& scope, int64_t opcode, const TensorArg& x) {
  static constinit call::Operator op("primitive_unary");
  return run<2>(scope, op, {x.value(), call::boxed(opcode)});
}
inline Tensor binary(Scope& scope, int64_t opcode, const TensorArg& x, const TensorArg& y) {
  static constinit call::Operator op("primitive_binary");
  return run<3>(scope, op, {x.value(), y.value(), call::boxed(opcode)});
}
inline Tensor compare(Scope& scope, int64_t opcode, const TensorArg& x, const TensorArg& y) {
  static constinit call::Operator op("primitive_compare");
  return run<3>(scope, op, {x.value(), y.value(), call::boxed(opcode)});
}
inline Tensor select(Scope& scope, const TensorArg& condition, const TensorArg& x,
                     const TensorArg& y) {
  static constinit call::Operator op("primitive_select");
  return run<3>(scope, op, {condition.value(), x.value(), y.value()});
}
inline Tensor reduce(Scope& scope, int64_t opcode, const TensorArg& x) {
  static constinit call::Operator op("primitive_reduce");
  return run<2>(scope, op, {x.value(), call::boxed(opcode)});
}
inline Tensor contract(Scope& scope, const TensorArg& x, const TensorArg& y) {
  static constinit call::Operator op("primitive_contract");
  return run<2>(scope, op, {x.value(), y.value()});
}
inline Tensor gather(Scope& scope, const TensorArg& x, const TensorArg& index) {
  static constinit call::Operator op("primitive_gather");
  return run<2>(scope, op, {x.value(), index.value()});
}
inline Tensor scatter(Scope& scope, int64_t opcode, const TensorArg& x, const TensorArg& index,
                      const TensorArg& source) {
  static constinit call::Operator op("primitive_scatter");
  return run<4>(scope, op, {x.value(), index.value(), source.value(), call::boxed(opcode)});
}
inline Tensor iota(Scope& scope, int64_t count, const ScalarArg& start, const ScalarArg& step,
                   int32_t dtype, int32_t device) {
  static constinit call::Operator op("primitive_iota");
  return run<5>(scope, op,
                {call::boxed(count), start.value(), step.value(), call::boxed_dtype(dtype),
                 call::boxed_device(device)});
}
inline Tensor random(Scope& scope, int64_t count, int32_t device) {
  static constinit call::Operator op("primitive_random");
  return run<2>(scope, op, {call::boxed(count), call::boxed_device(device)});
}

// -- views ----------------------------------------------------------------------------------------

inline Tensor view(Scope& scope, const Tensor& x, const std::vector<int64_t>& shape,
                   const std::vector<int64_t>& strides, int64_t offset = 0) {
  tenon_tensor* result = nullptr;
  if (!scope.ok() ||
      !scope.check(host->tensor_view(x.get(), x->dtype, static_cast<int32_t>(shape.size()),
                                     shape.data(), strides.data(), offset, &result, scope.err())))
    return {};
  return Tensor::adopt(result);
}

inline std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i] > 0 ? shape[i] : 1) strides[i] = step;
  return strides;
}

inline Tensor contiguous(Scope& scope, const Tensor& x) {
  if (!scope.ok() || x->flags & TENON_TENSOR_CONTIGUOUS) return x;
  return copy(scope, x, x->dtype);
}

// As many elements in another shape.
inline Tensor reshape(Scope& scope, const Tensor& x, const std::vector<int64_t>& shape) {
  return view(scope, contiguous(scope, x), shape, dense_strides(shape));
}

inline Tensor expand(Scope& scope, const Tensor& x, const std::vector<int64_t>& shape) {
  if (!scope.ok()) return {};
  std::vector<int64_t> strides(shape.size(), 0);
  const size_t lead = shape.size() - static_cast<size_t>(x->ndim);
  for (int32_t i = 0; i < x->ndim; ++i)
    if (x->shape[i] != 1) strides[lead + static_cast<size_t>(i)] = x->strides[i];
  return view(scope, x, shape, strides);
}

// -- dtypes that kernels need not support
// ------------------------------------------------------------

// float16, bfloat16 and float8 are computed in float32.
constexpr bool is_narrow_float(int32_t dtype) {
  return dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_BF16;
}
constexpr int32_t work_dtype(int32_t dtype) {
  return is_narrow_float(dtype) ? int32_t{TENON_DTYPE_F32} : dtype;
}

inline Tensor to_dtype(Scope& scope, const Tensor& x, int32_t dtype) {
  return !scope.ok() || x->dtype == dtype ? x : copy(scope, x, dtype);
}

// The same; int64 and uint64 are each other's bits, so that devices need not support uint64.
inline Tensor wrap_to_dtype(Scope& scope, const Tensor& x, int32_t dtype) {
  const bool same_bits = scope.ok() && ((x->dtype == TENON_DTYPE_I64 && dtype == TENON_DTYPE_U64) ||
                                        (x->dtype == TENON_DTYPE_U64 && dtype == TENON_DTYPE_I64));
  if (!same_bits) return to_dtype(scope, x, dtype);
  tenon_tensor* bits = nullptr;
  if (!scope.check(
          host->tensor_view(x.get(), dtype, x->ndim, x->shape, x->strides, 0, &bits, scope.err())))
    return {};
  return Tensor::adopt(bits);
}

inline int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

inline Tensor full(Scope& scope, const std::vector<int64_t>& shape, const ScalarArg& value,
                   int32_t dtype, int32_t device) {
  const ScalarArg none = value.is_float() ? ScalarArg(0.0) : ScalarArg(int64_t{0});
  Tensor flat = iota(scope, count_of(shape), value, none, work_dtype(dtype), device);
  if (!scope.ok()) return {};
  return reshape(scope, to_dtype(scope, flat, dtype), shape);
}

}  // namespace tenon::primitive
