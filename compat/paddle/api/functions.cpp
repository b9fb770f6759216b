// SPDX-License-Identifier: Apache-2.0
// Functions and operators of tensors, as calls of Tenon's operators.
#include <paddle/phi/api/include/api.h>
#include <tenon/ops.hpp>

#include "api/offer.hpp"
#include "api/tensor.hpp"

namespace paddle {
namespace {

using tenon::Scope;
using tenon::paddle::Error;
using tenon::paddle::handle_of;
using tenon::paddle::wrap;
namespace ops = tenon::ops;

// One or more operator calls in a scope; what fails is thrown.
template <typename Call>
auto run(Call&& call) {
  tenon::paddle::ErrorSink err;
  Scope scope(err);
  auto result = call(scope);
  err.check(scope.status());
  if constexpr (std::is_same_v<decltype(result), tenon::Tensor>)
    return wrap(std::move(result));
  else
    return result;
}

bool is_integer(DataType dtype) { return dtype >= DataType::BOOL && dtype <= DataType::INT64; }

// A number beside a tensor has the tensor's dtype: 1.5 is 1 beside integers.
tenon::TensorArg number_beside(const Tensor& tensor, const Scalar& scalar) {
  if (scalar.is_complex() && !is_integer(tensor.dtype())) {
    static thread_local double parts[2];
    auto value = scalar.to<complex128>();
    parts[0] = value.real;
    parts[1] = value.imag;
    return tenon::boxed_complex(parts);
  }
  if (tensor.dtype() == DataType::BOOL) return scalar.to<bool>();
  if (is_integer(tensor.dtype())) return scalar.to<int64_t>();
  return scalar.to<double>();
}

tenon::ScalarArg number(const Scalar& scalar) {
  if (scalar.is_complex())
    throw Error(TENON_UNSUPPORTED, "expected a real number, got a complex one; cast it");
  if (scalar.dtype() == DataType::BOOL) return scalar.to<bool>();
  return scalar.is_integer() ? tenon::ScalarArg(scalar.to<int64_t>())
                             : tenon::ScalarArg(scalar.to<double>());
}

int32_t dtype_or(DataType dtype, const Tensor& like) {
  return tenon::paddle::dtype_id(dtype == DataType::UNDEFINED ? like.dtype() : dtype);
}
int32_t device_or(const Place& place, const Tensor& like) {
  return place.GetType() == phi::AllocationType::UNDEFINED
             ? int32_t{handle_of(like)->device}
             : int32_t{tenon::paddle::device_id(place)};
}

// No axes: all.
tenon::OptionalInts axes_of(const std::vector<int64_t>& axes) {
  return axes.empty() ? tenon::OptionalInts() : tenon::OptionalInts(axes);
}
std::vector<int64_t> widened(const std::vector<int>& values) {
  return {values.begin(), values.end()};
}

std::vector<tenon::Tensor> handles_of(const std::vector<Tensor>& tensors) {
  std::vector<tenon::Tensor> handles;
  for (const Tensor& tensor : tensors) handles.push_back(handle_of(tensor));
  return handles;
}
// Copies: operators that split make views, and authors write into results.
std::vector<Tensor> copies_of(Scope& scope, const std::vector<tenon::Tensor>& parts) {
  std::vector<Tensor> tensors;
  for (const tenon::Tensor& part : parts) tensors.push_back(wrap(ops::clone(scope, part)));
  return tensors;
}

// Integers are divided as C++ divides them.
tenon::Tensor quotient(Scope& scope, tenon::TensorArg x, tenon::TensorArg y, DataType dtype) {
  if (!is_integer(dtype)) return ops::divide(scope, x, y);
  tenon::Tensor multiple = ops::subtract(scope, x, ops::fmod(scope, x, y));
  return ops::floor_divide(scope, multiple, y);
}

tenon::Tensor transposed(Scope& scope, const tenon::Tensor& x, bool is_transposed) {
  return is_transposed && x->ndim > 1 ? ops::transpose(scope, x, -2, -1) : x;
}

// x as a Scalar axis; `flatten`: over all elements.
std::optional<int64_t> axis_of(const Scalar& axis, bool flatten) {
  return flatten ? std::nullopt : std::optional(axis.to<int64_t>());
}

}  // namespace

// -- operators

#define PD_DEFINE_OPERATOR(OP, NAME)                                                        \
  Tensor Tensor::operator OP(const Tensor& other) const {                                   \
    return experimental::NAME(*this, other);                                                \
  }                                                                                         \
  Tensor Tensor::operator OP(const Scalar& other) const {                                   \
    return run([&](Scope& scope) {                                                          \
      return PD_CALL_##NAME(scope, handle_of(*this), number_beside(*this, other), dtype()); \
    });                                                                                     \
  }                                                                                         \
  Tensor operator OP(const Scalar& x, const Tensor& y) {                                    \
    return run([&](Scope& scope) {                                                          \
      return PD_CALL_##NAME(scope, number_beside(y, x), handle_of(y), y.dtype());           \
    });                                                                                     \
  }
#define PD_CALL_add(S, X, Y, D) ops::add(S, X, Y)
#define PD_CALL_subtract(S, X, Y, D) ops::subtract(S, X, Y)
#define PD_CALL_multiply(S, X, Y, D) ops::multiply(S, X, Y)
#define PD_CALL_divide(S, X, Y, D) quotient(S, X, Y, D)
#define PD_CALL_less_than(S, X, Y, D) ops::less(S, X, Y)
#define PD_CALL_less_equal(S, X, Y, D) ops::less_equal(S, X, Y)
#define PD_CALL_equal(S, X, Y, D) ops::equal(S, X, Y)
#define PD_CALL_not_equal(S, X, Y, D) ops::not_equal(S, X, Y)
#define PD_CALL_greater_than(S, X, Y, D) ops::greater(S, X, Y)
#define PD_CALL_greater_equal(S, X, Y, D) ops::greater_equal(S, X, Y)
PD_DEFINE_OPERATOR(+, add)
PD_DEFINE_OPERATOR(-, subtract)
PD_DEFINE_OPERATOR(*, multiply)
PD_DEFINE_OPERATOR(/, divide)
PD_DEFINE_OPERATOR(<, less_than)
PD_DEFINE_OPERATOR(<=, less_equal)
PD_DEFINE_OPERATOR(==, equal)
PD_DEFINE_OPERATOR(!=, not_equal)
PD_DEFINE_OPERATOR(>, greater_than)
PD_DEFINE_OPERATOR(>=, greater_equal)

Tensor Tensor::operator-() const {
  return run([&](Scope& scope) { return ops::negative(scope, handle_of(*this)); });
}
Tensor Tensor::operator~() const { return experimental::bitwise_not(*this); }
Tensor Tensor::operator&(const Tensor& other) const {
  return experimental::bitwise_and(*this, other);
}
Tensor Tensor::operator|(const Tensor& other) const {
  return experimental::bitwise_or(*this, other);
}
Tensor Tensor::operator^(const Tensor& other) const {
  return experimental::bitwise_xor(*this, other);
}
Tensor Tensor::cast(DataType dtype) const { return experimental::cast(*this, dtype); }

namespace experimental {

// -- one and two tensors: by the operator's name, which differs for a few

#define PD_DEFINE_UNARY(NAME, OPERATOR)                                                \
  Tensor NAME(const Tensor& x) {                                                       \
    return run([&](Scope& scope) { return ops::OPERATOR(scope, handle_of(x, "x")); }); \
  }
// clang-format off
#define PD_SAME(NAME) PD_DEFINE_UNARY(NAME, NAME)
PD_SAME(abs) PD_SAME(acos) PD_SAME(acosh) PD_SAME(asin) PD_SAME(asinh) PD_SAME(atan)
PD_SAME(atanh) PD_SAME(ceil) PD_SAME(conj) PD_SAME(cos) PD_SAME(cosh) PD_SAME(digamma)
PD_SAME(erf) PD_SAME(exp) PD_SAME(expm1) PD_SAME(floor) PD_SAME(hardswish) PD_SAME(imag)
PD_SAME(isfinite) PD_SAME(isinf) PD_SAME(isnan) PD_SAME(lgamma) PD_SAME(log) PD_SAME(log10)
PD_SAME(log1p) PD_SAME(log2) PD_SAME(logical_not) PD_SAME(nonzero) PD_SAME(real)
PD_SAME(reciprocal) PD_SAME(relu) PD_SAME(relu6) PD_SAME(rsqrt) PD_SAME(sigmoid) PD_SAME(sign)
PD_SAME(silu) PD_SAME(sin) PD_SAME(sinh) PD_SAME(softsign) PD_SAME(sqrt) PD_SAME(square)
PD_SAME(tan) PD_SAME(tanh) PD_SAME(trunc)
#undef PD_SAME
PD_DEFINE_UNARY(bitwise_not, bitwise_invert)
PD_DEFINE_UNARY(logsigmoid, log_sigmoid)
PD_DEFINE_UNARY(tanh_shrink, tanhshrink)
// clang-format on

#define PD_DEFINE_BINARY(NAME, OPERATOR)                                                           \
  Tensor NAME(const Tensor& x, const Tensor& y) {                                                  \
    return run(                                                                                    \
        [&](Scope& scope) { return ops::OPERATOR(scope, handle_of(x, "x"), handle_of(y, "y")); }); \
  }
// clang-format off
#define PD_SAME(NAME) PD_DEFINE_BINARY(NAME, NAME)
PD_SAME(add) PD_SAME(atan2) PD_SAME(bitwise_and) PD_SAME(bitwise_or) PD_SAME(bitwise_xor)
PD_SAME(equal) PD_SAME(floor_divide) PD_SAME(fmax) PD_SAME(fmin) PD_SAME(greater_equal)
PD_SAME(less_equal) PD_SAME(logical_and) PD_SAME(logical_or) PD_SAME(logical_xor)
PD_SAME(masked_select) PD_SAME(maximum) PD_SAME(minimum) PD_SAME(multiply) PD_SAME(not_equal)
PD_SAME(remainder) PD_SAME(subtract)
#undef PD_SAME
PD_DEFINE_BINARY(bmm, matmul)
PD_DEFINE_BINARY(mv, matmul)
PD_DEFINE_BINARY(elementwise_pow, pow)
PD_DEFINE_BINARY(greater_than, greater)
PD_DEFINE_BINARY(less_than, less)
    // clang-format on

    Tensor divide(const Tensor& x, const Tensor& y) {
  bool is_whole = is_integer(x.dtype()) && is_integer(y.dtype());
  return run([&](Scope& scope) {
    return quotient(scope, handle_of(x, "x"), handle_of(y, "y"),
                    is_whole ? x.dtype() : DataType::FLOAT32);
  });
}

// Along the last axis.
Tensor dot(const Tensor& x, const Tensor& y) {
  return run([&](Scope& scope) {
    return ops::sum(scope, ops::multiply(scope, handle_of(x, "x"), handle_of(y, "y")), -1);
  });
}

// -- new tensors

// Memory for a result of the running kernel, or new memory.
Tensor allocate(const std::vector<int64_t>& shape, DataType dtype, tenon_device_id device) {
  Tensor offered;
  if (tenon::paddle::take_offer(dtype, shape, device, &offered)) return offered;
  return run([&](Scope& scope) {
    return ops::empty(scope, shape, tenon::paddle::dtype_id(dtype), device);
  });
}
Tensor empty(const IntArray& shape, DataType dtype, const Place& place) {
  return allocate(shape.GetData(), dtype, tenon::paddle::device_id(place));
}
Tensor full(const IntArray& shape, const Scalar& value, DataType dtype, const Place& place) {
  return run([&](Scope& scope) {
    return ops::full(scope, shape.GetData(), number(value), tenon::paddle::dtype_id(dtype),
                     tenon::paddle::device_id(place));
  });
}
Tensor zeros(const IntArray& shape, DataType dtype, const Place& place) {
  return full(shape, 0, dtype, place);
}
Tensor ones(const IntArray& shape, DataType dtype, const Place& place) {
  return full(shape, 1, dtype, place);
}
Tensor empty_like(const Tensor& x, DataType dtype, const Place& place) {
  return allocate(x.shape(), dtype == DataType::UNDEFINED ? x.dtype() : dtype,
                  static_cast<tenon_device_id>(device_or(place, x)));
}
Tensor full_like(const Tensor& x, const Scalar& value, DataType dtype, const Place& place) {
  return run([&](Scope& scope) {
    return ops::full(scope, x.shape(), number(value), dtype_or(dtype, x), device_or(place, x));
  });
}
Tensor zeros_like(const Tensor& x, DataType dtype, const Place& place) {
  return full_like(x, 0, dtype, place);
}
Tensor ones_like(const Tensor& x, DataType dtype, const Place& place) {
  return full_like(x, 1, dtype, place);
}
Tensor arange(const Tensor& start, const Tensor& end, const Tensor& step, DataType dtype,
              const Place& place) {
  return run([&](Scope& scope) {
    return ops::arange(scope, number(Scalar(start)), number(Scalar(end)), number(Scalar(step)),
                       tenon::paddle::dtype_id(dtype), tenon::paddle::device_id(place));
  });
}
Tensor eye(const Scalar& rows, const Scalar& columns, DataType dtype, const Place& place) {
  return run([&](Scope& scope) {
    return ops::eye(scope, rows.to<int64_t>(), columns.to<int64_t>(), 0,
                    tenon::paddle::dtype_id(dtype), tenon::paddle::device_id(place));
  });
}

// -- copies and values

Tensor assign(const Tensor& x) {
  return run([&](Scope& scope) { return ops::clone(scope, handle_of(x, "x")); });
}
Tensor cast(const Tensor& x, DataType dtype) {
  return run([&](Scope& scope) {
    return ops::cast(scope, handle_of(x, "x"), tenon::paddle::dtype_id(dtype));
  });
}
Tensor copy_to(const Tensor& x, const Place& place, bool blocking) {
  return x.copy_to(place, blocking);
}
Tensor fill(const Tensor& x, const Scalar& value) { return full_like(x, value); }
Tensor& fill_(Tensor& x, const Scalar& value) {
  run([&](Scope& scope) {
    tenon::Tensor target = handle_of(x, "x");
    ops::full_out(scope, target, x.shape(), number(value), target->dtype, target->device);
    return 0;
  });
  return x;
}
Tensor scale(const Tensor& x, const Scalar& scale, const Scalar& bias, bool bias_after_scale) {
  return bias_after_scale ? x * scale + bias : (x + bias) * scale;
}
Tensor clip(const Tensor& x, const Scalar& min, const Scalar& max) {
  return run([&](Scope& scope) {
    return ops::clip(scope, handle_of(x, "x"), number_beside(x, min), number_beside(x, max));
  });
}
Tensor pow(const Tensor& x, const Scalar& exponent) {
  return run(
      [&](Scope& scope) { return ops::pow(scope, handle_of(x, "x"), number_beside(x, exponent)); });
}
Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  return run([&](Scope& scope) {
    return ops::where(scope, handle_of(condition, "condition"), handle_of(x, "x"),
                      handle_of(y, "y"));
  });
}
Tensor lerp(const Tensor& x, const Tensor& y, const Tensor& weight) {
  return run([&](Scope& scope) {
    return ops::lerp(scope, handle_of(x, "x"), handle_of(y, "y"), handle_of(weight, "weight"));
  });
}

// -- activations

Tensor elu(const Tensor& x, float alpha) {
  return run([&](Scope& scope) { return ops::elu(scope, handle_of(x, "x"), alpha); });
}
Tensor gelu(const Tensor& x, bool approximate) {
  return run([&](Scope& scope) { return ops::gelu(scope, handle_of(x, "x"), approximate); });
}
Tensor leaky_relu(const Tensor& x, float slope) {
  return run([&](Scope& scope) { return ops::leaky_relu(scope, handle_of(x, "x"), slope); });
}
Tensor log_softmax(const Tensor& x, int axis) {
  return run([&](Scope& scope) { return ops::log_softmax(scope, handle_of(x, "x"), axis); });
}
Tensor softmax(const Tensor& x, int axis) {
  return run([&](Scope& scope) { return ops::softmax(scope, handle_of(x, "x"), axis); });
}

// -- products, reductions

Tensor matmul(const Tensor& x, const Tensor& y, bool transpose_x, bool transpose_y) {
  return run([&](Scope& scope) {
    return ops::matmul(scope, transposed(scope, handle_of(x, "x"), transpose_x),
                       transposed(scope, handle_of(y, "y"), transpose_y));
  });
}
Tensor sum(const Tensor& x, const IntArray& axis, DataType dtype, bool keepdim) {
  return run([&](Scope& scope) {
    tenon::Tensor from = handle_of(x, "x");
    if (dtype != DataType::UNDEFINED) from = ops::cast(scope, from, tenon::paddle::dtype_id(dtype));
    return ops::sum(scope, from, axes_of(axis.GetData()), keepdim);
  });
}
#define PD_DEFINE_REDUCTION(NAME, AXES, DATA)                             \
  Tensor NAME(const Tensor& x, const AXES& axis, bool keepdim) {          \
    return run([&](Scope& scope) {                                        \
      return ops::NAME(scope, handle_of(x, "x"), axes_of(DATA), keepdim); \
    });                                                                   \
  }
PD_DEFINE_REDUCTION(mean, IntArray, axis.GetData())
PD_DEFINE_REDUCTION(max, IntArray, axis.GetData())
PD_DEFINE_REDUCTION(min, IntArray, axis.GetData())
PD_DEFINE_REDUCTION(all, std::vector<int64_t>, axis)
PD_DEFINE_REDUCTION(any, std::vector<int64_t>, axis)

Tensor prod(const Tensor& x, const IntArray& axis, bool keepdim, bool reduce_all) {
  return run([&](Scope& scope) {
    return ops::prod(scope, handle_of(x, "x"),
                     axes_of(reduce_all ? std::vector<int64_t>() : axis.GetData()), keepdim);
  });
}
Tensor logsumexp(const Tensor& x, const std::vector<int64_t>& axis, bool keepdim, bool reduce_all) {
  return run([&](Scope& scope) {
    return ops::logsumexp(scope, handle_of(x, "x"),
                          axes_of(reduce_all ? std::vector<int64_t>() : axis), keepdim);
  });
}
Tensor argmax(const Tensor& x, const Scalar& axis, bool keepdims, bool flatten, DataType dtype) {
  return run([&](Scope& scope) {
    return ops::cast(scope, ops::argmax(scope, handle_of(x, "x"), axis_of(axis, flatten), keepdims),
                     tenon::paddle::dtype_id(dtype));
  });
}
Tensor argmin(const Tensor& x, const Scalar& axis, bool keepdims, bool flatten, DataType dtype) {
  return run([&](Scope& scope) {
    return ops::cast(scope, ops::argmin(scope, handle_of(x, "x"), axis_of(axis, flatten), keepdims),
                     tenon::paddle::dtype_id(dtype));
  });
}
std::tuple<Tensor, Tensor> argsort(const Tensor& x, int axis, bool descending) {
  auto sorted = run([&](Scope& scope) {
    return ops::sort_with_indices(scope, handle_of(x, "x"), axis, descending);
  });
  return {wrap(std::move(sorted.values)), wrap(std::move(sorted.indices))};
}
std::tuple<Tensor, Tensor> topk(const Tensor& x, const Scalar& k, int axis, bool largest, bool) {
  auto found = run([&](Scope& scope) {
    return ops::topk(scope, handle_of(x, "x"), k.to<int64_t>(), axis, largest);
  });
  return {wrap(std::move(found.values)), wrap(std::move(found.indices))};
}

// -- shapes, gathering

// A result of its own, also where the operator makes a view: authors write into results.
template <typename Call>
Tensor copied(Call&& call) {
  return run([&](Scope& scope) { return ops::clone(scope, call(scope)); });
}
Tensor reshape(const Tensor& x, const IntArray& shape) {
  return copied([&](Scope& s) { return ops::reshape(s, handle_of(x, "x"), shape.GetData()); });
}
Tensor flatten(const Tensor& x, int start_axis, int stop_axis) {
  return copied(
      [&](Scope& s) { return ops::flatten(s, handle_of(x, "x"), start_axis, stop_axis); });
}
Tensor transpose(const Tensor& x, const std::vector<int>& permutation) {
  std::vector<int64_t> axes = widened(permutation);
  return copied([&](Scope& s) { return ops::permute(s, handle_of(x, "x"), axes); });
}
Tensor squeeze(const Tensor& x, const IntArray& axis) {
  return copied(
      [&](Scope& s) { return ops::squeeze(s, handle_of(x, "x"), axes_of(axis.GetData())); });
}
Tensor unsqueeze(const Tensor& x, const IntArray& axis) {
  return copied([&](Scope& s) { return ops::unsqueeze(s, handle_of(x, "x"), axis.GetData()); });
}
Tensor expand(const Tensor& x, const IntArray& shape) {
  return copied([&](Scope& s) { return ops::expand(s, handle_of(x, "x"), shape.GetData()); });
}
Tensor tile(const Tensor& x, const IntArray& repeat_times) {
  return copied([&](Scope& s) { return ops::tile(s, handle_of(x, "x"), repeat_times.GetData()); });
}
Tensor flip(const Tensor& x, const std::vector<int>& axis) {
  std::vector<int64_t> axes = widened(axis);
  return copied([&](Scope& s) { return ops::flip(s, handle_of(x, "x"), axes); });
}
Tensor roll(const Tensor& x, const IntArray& shifts, const std::vector<int64_t>& axis) {
  return copied(
      [&](Scope& s) { return ops::roll(s, handle_of(x, "x"), shifts.GetData(), axes_of(axis)); });
}
Tensor tril(const Tensor& x, int diagonal) {
  return run([&](Scope& scope) { return ops::tril(scope, handle_of(x, "x"), diagonal); });
}
Tensor triu(const Tensor& x, int diagonal) {
  return run([&](Scope& scope) { return ops::triu(scope, handle_of(x, "x"), diagonal); });
}
Tensor concat(const std::vector<Tensor>& x, const Scalar& axis) {
  return run([&](Scope& s) { return ops::concat(s, handles_of(x), axis.to<int64_t>()); });
}
Tensor stack(const std::vector<Tensor>& x, int axis) {
  return run([&](Scope& scope) { return ops::stack(scope, handles_of(x), axis); });
}
std::vector<Tensor> split(const Tensor& x, const IntArray& sections, const Scalar& axis) {
  return run([&](Scope& s) {
    return copies_of(s, ops::split(s, handle_of(x, "x"), sections.GetData(), axis.to<int64_t>()));
  });
}
std::vector<Tensor> unbind(const Tensor& x, int axis) {
  return run([&](Scope& s) { return copies_of(s, ops::unbind(s, handle_of(x, "x"), axis)); });
}
Tensor index_select(const Tensor& x, const Tensor& index, int axis) {
  return run([&](Scope& scope) {
    return ops::index_select(scope, handle_of(x, "x"), handle_of(index, "index"), axis);
  });
}
Tensor gather(const Tensor& x, const Tensor& index, const Scalar& axis) {
  const std::vector<int64_t> shape = index.shape();
  if (shape.size() > 2 || (shape.size() == 2 && shape[1] != 1))
    throw Error(TENON_INVALID_ARGUMENT,
                "gather: expected an index of shape [], [n] or [n, 1], got one of " +
                    std::to_string(shape.size()) + " axes");
  return run([&](Scope& scope) {
    const int64_t count = index.numel();
    const tenon::Tensor flat =
        ops::reshape(scope, handle_of(index, "index"), std::vector<int64_t>{count});
    const tenon::Tensor rows =
        ops::index_select(scope, handle_of(x, "x"), flat, axis.to<int64_t>());
    if (!shape.empty()) return rows;
    return ops::squeeze(scope, rows, std::vector<int64_t>{axis.to<int64_t>()});
  });
}
Tensor take_along_axis(const Tensor& x, const Tensor& index, int axis) {
  return run([&](Scope& scope) {
    return ops::take_along_axis(scope, handle_of(x, "x"), handle_of(index, "index"), axis);
  });
}
// float32, as authors expect.
Tensor one_hot(const Tensor& x, const Scalar& count) {
  return run([&](Scope& scope) {
    return ops::cast(scope, ops::one_hot(scope, handle_of(x, "x"), count.to<int64_t>()),
                     TENON_DTYPE_F32);
  });
}

}  // namespace experimental
}  // namespace paddle
