// SPDX-License-Identifier: Apache-2.0
// The operators that rules are made of. Their calls are seen by all layers, so that gradients pass through the parts.
#pragma once

#include "composed.hpp"

namespace tenon::parts {

using call::Operator;

// The one result of a call. Empty if the scope has failed.
inline Tensor run(Scope& scope, Operator& op, std::initializer_list<tenon_value> args) {
  tenon_value values[8];
  std::copy(args.begin(), args.end(), values);
  return call::result(scope, op, values, static_cast<uint32_t>(args.size()));
}

inline tenon_value box(const Tensor& tensor) { return tensor ? boxed(tensor.get()) : kNoValue; }
inline tenon_value box(const std::vector<int64_t>& list) { return boxed(list.data(), list.size()); }

namespace op {
inline constinit Operator add("tenon::add"), subtract("tenon::subtract"),
    multiply("tenon::multiply"), divide("tenon::divide"), equal("tenon::equal"),
    not_equal("tenon::not_equal"), negative("tenon::negative"), cast("tenon::cast"),
    clone("tenon::clone"), copy_to_device("tenon::copy_to_device"), reshape("tenon::reshape"),
    concat("tenon::concat"), index_select("tenon::index_select"), index_add("tenon::index_add"),
    index_put("tenon::index_put"), index("tenon::index"), segment_add("tenon::segment_add"),
    cumsum("tenon::cumsum"), compress("tenon::compress"), narrow("tenon::narrow"),
    select("tenon::select"), searchsorted("tenon::searchsorted"), arange("tenon::arange"),
    full("tenon::full"), sum("tenon::sum"), norm("tenon::norm"), transpose("tenon::transpose"),
    unsqueeze("tenon::unsqueeze"), squeeze("tenon::squeeze"), floor_divide("tenon::floor_divide"),
    remainder("tenon::remainder"), stack("tenon::stack"), nonzero("tenon::nonzero"),
    less("tenon::less"), greater_equal("tenon::greater_equal"), logical_or("tenon::logical_or"),
    any("tenon::any"), csr_rows("tenon::csr_rows"), csr_matmul("tenon::csr_matmul"),
    csr_matmul_transposed("tenon::csr_matmul_transposed"), csr_order("tenon::csr_order"),
    csr_transpose("tenon::csr_transpose"), csr_product("tenon::csr_product"),
    csr_is_sorted("tenon::csr_is_sorted"), csr_softmax("tenon::csr_softmax"),
    coo_coalesce("tenon::coo_coalesce"), matmul("tenon::matmul"), minimum("tenon::minimum"),
    sort("tenon::sort"), expand("tenon::expand"), slice("tenon::slice"),
    segment_extreme("tenon::segment_extreme"), max("tenon::max");
}  // namespace op

inline Tensor select_rows(Scope& scope, const Tensor& x, const Tensor& rows) {
  return run(scope, op::index_select, {box(x), box(rows), boxed(int64_t{0})});
}
inline Tensor reshaped(Scope& scope, const Tensor& x, const std::vector<int64_t>& shape) {
  return run(scope, op::reshape, {box(x), box(shape)});
}
inline Tensor cast_to(Scope& scope, const Tensor& x, int32_t dtype) {
  if (!scope.ok() || x->dtype == dtype) return x;
  return run(scope, op::cast, {box(x), boxed_dtype(dtype)});
}
inline Tensor concatenated(Scope& scope, const Tensor& x, const Tensor& y, int64_t axis) {
  if (!scope.ok()) return {};
  tenon_tensor* both[] = {x.get(), y.get()};
  return run(scope, op::concat, {boxed(both, 2), boxed(axis)});
}
// The int64 numbers from 0 to `count` - 1 on the device of `like`.
inline Tensor numbers(Scope& scope, int64_t count, const Tensor& like) {
  if (!scope.ok()) return {};
  return run(scope, op::arange,
             {boxed(count), kNoValue, boxed(int64_t{1}), boxed_dtype(TENON_DTYPE_I64),
              boxed_device(like->device)});
}
inline Tensor filled(Scope& scope, const std::vector<int64_t>& shape, int64_t value, int32_t dtype,
                     tenon_device_id device) {
  if (!scope.ok()) return {};
  return run(scope, op::full, {box(shape), boxed(value), boxed_dtype(dtype), boxed_device(device)});
}

// One number of a tensor, read by the host. 0 if the scope has failed.
int64_t read_integer(Scope& scope, const Tensor& x);

}  // namespace tenon::parts
