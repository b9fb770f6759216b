// SPDX-License-Identifier: Apache-2.0
// Functions on tensors, paddle::experimental::f and paddle::f: those for which Tenon has an
// operator of the same meaning. They run where their tensors are, by Tenon's dispatcher. Others are
// not declared.
#pragma once

#include <paddle/phi/api/include/tensor.h>

#include <tuple>
#include <vector>

// clang-format off
// Each list once: X(name). PD_DECLARE below says with which parameters.
#define PD_UNARY_FUNCTIONS(X) \
  X(abs) X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(bitwise_not) X(ceil) X(conj) \
  X(cos) X(cosh) X(digamma) X(erf) X(exp) X(expm1) X(floor) X(hardswish) X(imag) X(isfinite) \
  X(isinf) X(isnan) X(lgamma) X(log) X(log10) X(log1p) X(log2) X(logical_not) X(logsigmoid) \
  X(nonzero) X(real) X(reciprocal) X(relu) X(relu6) X(rsqrt) X(sigmoid) X(sign) X(silu) X(sin) \
  X(sinh) X(softsign) X(sqrt) X(square) X(tan) X(tanh) X(tanh_shrink) X(trunc)
#define PD_BINARY_FUNCTIONS(X) \
  X(add) X(atan2) X(bitwise_and) X(bitwise_or) X(bitwise_xor) X(bmm) X(divide) X(dot) \
  X(elementwise_pow) X(equal) X(floor_divide) X(fmax) X(fmin) X(greater_equal) X(greater_than) \
  X(less_equal) X(less_than) X(logical_and) X(logical_or) X(logical_xor) X(masked_select) \
  X(maximum) X(minimum) X(multiply) X(mv) X(not_equal) X(remainder) X(subtract)
// clang-format on

namespace paddle {
namespace experimental {

#define PD_DECLARE(NAME) PADDLE_API Tensor NAME(const Tensor& x);
PD_UNARY_FUNCTIONS(PD_DECLARE)
#undef PD_DECLARE
#define PD_DECLARE(NAME) PADDLE_API Tensor NAME(const Tensor& x, const Tensor& y);
PD_BINARY_FUNCTIONS(PD_DECLARE)
#undef PD_DECLARE

// -- new tensors; an undefined place is the processor
PADDLE_API Tensor empty(const IntArray& shape, DataType dtype = DataType::FLOAT32,
                        const Place& place = CPUPlace());
PADDLE_API Tensor full(const IntArray& shape, const Scalar& value,
                       DataType dtype = DataType::FLOAT32, const Place& place = CPUPlace());
PADDLE_API Tensor zeros(const IntArray& shape, DataType dtype = DataType::FLOAT32,
                        const Place& place = CPUPlace());
PADDLE_API Tensor ones(const IntArray& shape, DataType dtype = DataType::FLOAT32,
                       const Place& place = CPUPlace());
// UNDEFINED: as `x` has it.
PADDLE_API Tensor empty_like(const Tensor& x, DataType dtype = DataType::UNDEFINED,
                             const Place& place = Place());
PADDLE_API Tensor full_like(const Tensor& x, const Scalar& value,
                            DataType dtype = DataType::UNDEFINED, const Place& place = Place());
PADDLE_API Tensor zeros_like(const Tensor& x, DataType dtype = DataType::UNDEFINED,
                             const Place& place = Place());
PADDLE_API Tensor ones_like(const Tensor& x, DataType dtype = DataType::UNDEFINED,
                            const Place& place = Place());
PADDLE_API Tensor arange(const Tensor& start, const Tensor& end, const Tensor& step,
                         DataType dtype = DataType::FLOAT64, const Place& place = CPUPlace());
PADDLE_API Tensor eye(const Scalar& rows, const Scalar& columns, DataType dtype = DataType::FLOAT32,
                      const Place& place = CPUPlace());

// -- copies and values
PADDLE_API Tensor assign(const Tensor& x);
PADDLE_API Tensor cast(const Tensor& x, DataType dtype);
PADDLE_API Tensor copy_to(const Tensor& x, const Place& place, bool blocking = true);
PADDLE_API Tensor fill(const Tensor& x, const Scalar& value);
PADDLE_API Tensor& fill_(Tensor& x, const Scalar& value);
PADDLE_API Tensor scale(const Tensor& x, const Scalar& scale = 1.0, const Scalar& bias = 0.0,
                        bool bias_after_scale = true);
PADDLE_API Tensor clip(const Tensor& x, const Scalar& min, const Scalar& max);
PADDLE_API Tensor pow(const Tensor& x, const Scalar& exponent);
PADDLE_API Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
PADDLE_API Tensor lerp(const Tensor& x, const Tensor& y, const Tensor& weight);

// -- activations
PADDLE_API Tensor elu(const Tensor& x, float alpha = 1.0f);
PADDLE_API Tensor gelu(const Tensor& x, bool approximate = false);
PADDLE_API Tensor leaky_relu(const Tensor& x, float negative_slope = 0.02f);
PADDLE_API Tensor log_softmax(const Tensor& x, int axis = -1);
PADDLE_API Tensor softmax(const Tensor& x, int axis = -1);

// -- products, reductions, scans
PADDLE_API Tensor matmul(const Tensor& x, const Tensor& y, bool transpose_x = false,
                         bool transpose_y = false);
// No axes: over all.
PADDLE_API Tensor sum(const Tensor& x, const IntArray& axis = {},
                      DataType dtype = DataType::UNDEFINED, bool keepdim = false);
PADDLE_API Tensor mean(const Tensor& x, const IntArray& axis = {}, bool keepdim = false);
PADDLE_API Tensor max(const Tensor& x, const IntArray& axis = {}, bool keepdim = false);
PADDLE_API Tensor min(const Tensor& x, const IntArray& axis = {}, bool keepdim = false);
PADDLE_API Tensor prod(const Tensor& x, const IntArray& axis, bool keepdim, bool reduce_all);
PADDLE_API Tensor all(const Tensor& x, const std::vector<int64_t>& axis = {}, bool keepdim = false);
PADDLE_API Tensor any(const Tensor& x, const std::vector<int64_t>& axis = {}, bool keepdim = false);
PADDLE_API Tensor logsumexp(const Tensor& x, const std::vector<int64_t>& axis, bool keepdim,
                            bool reduce_all);
PADDLE_API Tensor argmax(const Tensor& x, const Scalar& axis, bool keepdims = false,
                         bool flatten = false, DataType dtype = DataType::INT64);
PADDLE_API Tensor argmin(const Tensor& x, const Scalar& axis, bool keepdims = false,
                         bool flatten = false, DataType dtype = DataType::INT64);
PADDLE_API std::tuple<Tensor, Tensor> argsort(const Tensor& x, int axis = -1,
                                              bool descending = false);
PADDLE_API std::tuple<Tensor, Tensor> topk(const Tensor& x, const Scalar& k = 1, int axis = -1,
                                           bool largest = true, bool sorted = true);

// -- shapes, gathering
PADDLE_API Tensor reshape(const Tensor& x, const IntArray& shape);
PADDLE_API Tensor flatten(const Tensor& x, int start_axis = 1, int stop_axis = 1);
PADDLE_API Tensor transpose(const Tensor& x, const std::vector<int>& permutation);
PADDLE_API Tensor squeeze(const Tensor& x, const IntArray& axis = {});
PADDLE_API Tensor unsqueeze(const Tensor& x, const IntArray& axis = {});
PADDLE_API Tensor expand(const Tensor& x, const IntArray& shape = {});
PADDLE_API Tensor tile(const Tensor& x, const IntArray& repeat_times = {});
PADDLE_API Tensor flip(const Tensor& x, const std::vector<int>& axis);
PADDLE_API Tensor roll(const Tensor& x, const IntArray& shifts = {},
                       const std::vector<int64_t>& axis = {});
PADDLE_API Tensor tril(const Tensor& x, int diagonal = 0);
PADDLE_API Tensor triu(const Tensor& x, int diagonal = 0);
PADDLE_API Tensor concat(const std::vector<Tensor>& x, const Scalar& axis = 0);
PADDLE_API Tensor stack(const std::vector<Tensor>& x, int axis = 0);
PADDLE_API std::vector<Tensor> split(const Tensor& x, const IntArray& sections, const Scalar& axis);
PADDLE_API std::vector<Tensor> unbind(const Tensor& x, int axis = 0);
PADDLE_API Tensor index_select(const Tensor& x, const Tensor& index, int axis = 0);
// Like index_select; an index of shape [n, 1] counts as [n], one number leaves the axis out.
PADDLE_API Tensor gather(const Tensor& x, const Tensor& index, const Scalar& axis = 0);
PADDLE_API Tensor take_along_axis(const Tensor& x, const Tensor& index, int axis);
PADDLE_API Tensor one_hot(const Tensor& x, const Scalar& count);

}  // namespace experimental

// clang-format off
#define PD_ALIAS(NAME) using experimental::NAME;
PD_UNARY_FUNCTIONS(PD_ALIAS)
PD_BINARY_FUNCTIONS(PD_ALIAS)
PD_ALIAS(empty) PD_ALIAS(full) PD_ALIAS(zeros) PD_ALIAS(ones) PD_ALIAS(empty_like)
PD_ALIAS(full_like) PD_ALIAS(zeros_like) PD_ALIAS(ones_like) PD_ALIAS(arange) PD_ALIAS(eye)
PD_ALIAS(assign) PD_ALIAS(cast) PD_ALIAS(copy_to) PD_ALIAS(fill) PD_ALIAS(fill_) PD_ALIAS(scale)
PD_ALIAS(clip) PD_ALIAS(pow) PD_ALIAS(where) PD_ALIAS(lerp) PD_ALIAS(elu) PD_ALIAS(gelu)
PD_ALIAS(leaky_relu) PD_ALIAS(log_softmax) PD_ALIAS(softmax) PD_ALIAS(matmul) PD_ALIAS(sum)
PD_ALIAS(mean) PD_ALIAS(max) PD_ALIAS(min) PD_ALIAS(prod) PD_ALIAS(all) PD_ALIAS(any)
PD_ALIAS(logsumexp) PD_ALIAS(argmax) PD_ALIAS(argmin) PD_ALIAS(argsort) PD_ALIAS(topk)
PD_ALIAS(reshape) PD_ALIAS(flatten) PD_ALIAS(transpose) PD_ALIAS(squeeze) PD_ALIAS(unsqueeze)
PD_ALIAS(expand) PD_ALIAS(tile) PD_ALIAS(flip) PD_ALIAS(roll) PD_ALIAS(tril) PD_ALIAS(triu)
PD_ALIAS(concat) PD_ALIAS(stack) PD_ALIAS(split) PD_ALIAS(unbind) PD_ALIAS(index_select)
PD_ALIAS(gather) PD_ALIAS(take_along_axis) PD_ALIAS(one_hot)
#undef PD_ALIAS
// clang-format on

}  // namespace paddle
