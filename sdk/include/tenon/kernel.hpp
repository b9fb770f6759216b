// SPDX-License-Identifier: Apache-2.0
// Kernels in C++: typed views of tensors, the choice of the element type, exceptions as errors.
//
//   template <class T>
//   void scale(KernelContext& context, View<const T> x, double factor, View<T> out) {
//     context.parallel(out.size(), [&](int64_t begin, int64_t end) {
//       for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(x[i] * factor);
//     });
//   }
//
// Views point at memory of the kernel's device: the processor reads elements of a device whose
// memory it shares, and passes data() on for others. Compiles as C++20, CUDA C++ and HIP.
#pragma once

#include <tenon/unbox.h>
#include <tenon/error.hpp>
#include <tenon/parallel.hpp>
#include <tenon/reduced_float.hpp>
#include <tenon/tensor.hpp>

#include <atomic>
#include <complex>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace tenon {

// -- element types --------------------------------------------------------------------------------

// The TENON_DTYPE_ id of a C++ type; -1 for types that no tensor holds.
template <class T>
inline constexpr int dtype_of = -1;
template <class T>
inline constexpr int dtype_of<const T> = dtype_of<T>;
#define TENON_ELEMENT_TYPE(TYPE, DTYPE) \
  template <>                           \
  inline constexpr int dtype_of<TYPE> = TENON_DTYPE_##DTYPE;
TENON_ELEMENT_TYPE(bool, BOOL)
TENON_ELEMENT_TYPE(uint8_t, U8)
TENON_ELEMENT_TYPE(int8_t, I8)
TENON_ELEMENT_TYPE(uint16_t, U16)
TENON_ELEMENT_TYPE(int16_t, I16)
TENON_ELEMENT_TYPE(uint32_t, U32)
TENON_ELEMENT_TYPE(int32_t, I32)
TENON_ELEMENT_TYPE(uint64_t, U64)
TENON_ELEMENT_TYPE(int64_t, I64)
TENON_ELEMENT_TYPE(Float8E4M3, F8E4M3)
TENON_ELEMENT_TYPE(Float8E5M2, F8E5M2)
TENON_ELEMENT_TYPE(Float16, F16)
TENON_ELEMENT_TYPE(BFloat16, BF16)
TENON_ELEMENT_TYPE(float, F32)
TENON_ELEMENT_TYPE(double, F64)
TENON_ELEMENT_TYPE(std::complex<float>, C64)
TENON_ELEMENT_TYPE(std::complex<double>, C128)
#undef TENON_ELEMENT_TYPE

// What to compute in: float for float16, bfloat16 and the float8 types, otherwise the type itself.
template <class T>
using arithmetic_t =
    std::conditional_t<(dtype_of<T> >= TENON_DTYPE_F8E4M3 && dtype_of<T> <= TENON_DTYPE_BF16),
                       float, std::remove_const_t<T>>;

// Results of operators whose dtype follows from the compute dtype: `out: real`, `out: accumulate`,
// `out: float`.
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using real_t = typename RealOf<T>::type;
template <class T>
using accumulate_t = std::conditional_t<
    !std::is_integral_v<T>, T,
    std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, int64_t, uint64_t>>;
template <class T>
using inexact_t = std::conditional_t<std::is_integral_v<T>, float, T>;

// f.operator()<T>() for the one of Types whose dtype this is: dispatch<float, double>(dtype, f).
template <class... Types, class F>
void dispatch(int dtype, F&& f) {
  static_assert(((dtype_of<Types> >= 0) && ...), "no tensor holds one of these types");
  const bool found = ((dtype == dtype_of<Types> && (f.template operator()<Types>(), true)) || ...);
  if (found) return;
  std::string known;
  ((known += (known.empty() ? "" : ", ") + std::string(host->dtype_name(dtype_of<Types>))), ...);
  const char* name = host->dtype_name(dtype);
  throw Error(TENON_TYPE_MISMATCH,
              "expected dtype " + known + ", got " + (name ? name : "an unknown one"));
}

// -- views ----------------------------------------------------------------------------------------

// A tensor of any dtype. Borrowed: valid during the call that passed it. Empty (false) where an
// optional argument was not given.
class TensorView {
 public:
  TensorView(const tenon_tensor* tensor = nullptr) : tensor_(tensor) {}

  explicit operator bool() const { return tensor_ != nullptr; }
  const tenon_tensor* tensor() const { return tensor_; }
  int dtype() const { return tensor_->dtype; }
  int ndim() const { return tensor_->ndim; }
  int64_t size() const { return tensor_->numel; }  // elements
  std::span<const int64_t> shape() const { return {tensor_->shape, extents()}; }
  std::span<const int64_t> strides() const { return {tensor_->strides, extents()}; }  // in elements
  // Negative axes count from the end.
  int64_t shape(int64_t axis) const { return tensor_->shape[checked(axis)]; }
  int64_t stride(int64_t axis) const { return tensor_->strides[checked(axis)]; }
  bool is_contiguous() const { return (tensor_->flags & TENON_TENSOR_CONTIGUOUS) != 0; }

 private:
  size_t extents() const { return static_cast<size_t>(tensor_->ndim); }
  int64_t checked(int64_t axis) const {
    const int64_t positive = axis < 0 ? axis + tensor_->ndim : axis;
    if (positive < 0 || positive >= tensor_->ndim)
      throw Error(TENON_OUT_OF_RANGE, "expected an axis of a tensor with " +
                                          std::to_string(tensor_->ndim) + " axes, got " +
                                          std::to_string(axis));
    return positive;
  }

  const tenon_tensor* tensor_;
};

// The same with elements of type T. The dtype is checked when it is made.
template <class T>
class View : public TensorView {
 public:
  View(TensorView view = {}) : TensorView(view) {
    static_assert(dtype_of<T> >= 0, "no tensor holds this type; integers: int64_t, ...");
    if (view && view.dtype() != dtype_of<T>)
      throw Error(TENON_TYPE_MISMATCH, std::string("expected a tensor of ") +
                                           host->dtype_name(dtype_of<T>) + ", got " +
                                           host->dtype_name(view.dtype()));
  }

  T* data() const { return static_cast<T*>(tensor()->data); }
  T* begin() const { return data(); }
  T* end() const { return data() + size(); }
  // The i-th element of a contiguous tensor. Kernels get other tensors only if they declare
  // TENON_KERNEL_STRIDED.
  T& operator[](int64_t i) const { return data()[i]; }
  // One index for each axis, by strides.
  template <class... Index>
  T& operator()(Index... index) const {
    int64_t offset = 0;
    int axis = 0;
    ((offset += static_cast<int64_t>(index) * tensor()->strides[axis++]), ...);
    return data()[offset];
  }
};

// -- the call -------------------------------------------------------------------------------------

// Services of the host for the call that a kernel runs in. Valid until the kernel returns.
class KernelContext {
 public:
  KernelContext(tenon_ctx* ctx, tenon_err* err) : ctx_(ctx), err_(err) {}

  tenon_ctx* get() const { return ctx_; }
  // Where to queue work; NULL: the device's synchronous stream.
  tenon_stream stream() const { return host->ctx_stream(ctx_); }
  // The same as a driver's own type: cudaStream_t, hipStream_t.
  template <class Stream>
  Stream stream_as() const {
    return reinterpret_cast<Stream>(stream());
  }

  // Device memory for `count` elements until the call ends.
  template <class T>
  T* scratch(int64_t count) const {
    void* memory = nullptr;
    const uint64_t bytes = static_cast<uint64_t>(count) * sizeof(T);
    if (bytes > 0) check(host->scratch(ctx_, bytes, &memory, err_));
    return static_cast<T*>(memory);
  }

  // Allocates result `index` of a data-dependent operator, whose shape is known to the kernel
  // alone.
  template <class T>
  View<T> allocate(uint32_t index, std::span<const int64_t> shape) const {
    tenon_tensor* out = nullptr;
    check(host->output_alloc(ctx_, index, dtype_of<T>, static_cast<int32_t>(shape.size()),
                             shape.data(), &out, err_));
    return TensorView(out);
  }

  // f(begin, end) over [0, n) on the process's threads, in any order; `work`: cost of one item in
  // additions. The first exception is thrown again when all are done.
  template <class F>
  void parallel(int64_t n, F&& f, int64_t work = 1) const {
    std::exception_ptr thrown;
    std::atomic_flag is_thrown = ATOMIC_FLAG_INIT;
    tenon::parallel(n, work, [&](int64_t begin, int64_t end) {
      try {
        f(begin, end);
      } catch (...) {
        if (!is_thrown.test_and_set()) thrown = std::current_exception();
      }
    });
    if (thrown) std::rethrow_exception(thrown);
  }

  // For calls into the C ABI.
  void check(tenon_status status) const {
    if (status != TENON_OK) throw Error(status, host->err_text(err_));
  }
  tenon_err* err() const { return err_; }

 private:
  tenon_ctx* ctx_;
  tenon_err* err_;
};

// -- arguments of a boxed call --------------------------------------------------------------------

namespace argument {

inline TensorView tensor(const tenon_value& value) { return tenon_arg_tensor(&value); }
inline std::span<const tenon_tensor* const> tensors(const tenon_value& value) {
  return {tenon_arg_tensors(&value), tenon_arg_count(&value)};
}
inline std::span<const int64_t> ints(const tenon_value& value) {
  return {tenon_arg_ints(&value), tenon_arg_count(&value)};
}
inline std::span<const double> floats(const tenon_value& value) {
  return {tenon_arg_floats(&value), tenon_arg_count(&value)};
}
inline std::string_view string(const tenon_value& value) {
  return {tenon_arg_string(&value), tenon_arg_count(&value)};
}
// Of a tensor, or of the first one in a list.
inline int dtype(const tenon_value& value) {
  if (value.tag == TENON_VALUE_TENSORS)
    return value.aux > 0 ? tenon_arg_tensors(&value)[0]->dtype : -1;
  return tenon_arg_tensor(&value)->dtype;
}
// An argument that may be none: optional(value, tenon_arg_int).
template <class Result>
std::optional<Result> optional(const tenon_value& value, Result (*read)(const tenon_value*)) {
  if (value.tag == TENON_VALUE_NONE) return std::nullopt;
  return read(&value);
}
inline bool boolean(const tenon_value* value) { return tenon_arg_bool(value) != 0; }

}  // namespace argument

}  // namespace tenon
