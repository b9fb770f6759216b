// SPDX-License-Identifier: Apache-2.0
// From a boxed argument to a C++ parameter: which types stand for which parameters of a signature.
// Part of tenon/extension.hpp.
#pragma once

#include <tenon/functions.hpp>
#include <tenon/kernel.hpp>

#include <limits>

namespace tenon {

// An element type and a device as values: what TENON_DTYPE_F32 and host->device_find name. Both
// pass where operator functions expect an id.
struct Dtype {
  int32_t id;
  operator int32_t() const { return id; }
};
struct Device {
  tenon_device_id id;
  operator int32_t() const { return id; }
};

// Parameters of a gradient function that it does not need: nothing is kept for them.
struct Unread {};
// Parameters of a gradient function of which it needs shape and dtype alone: a tensor without data.
struct ShapeOnly {
  Tensor tensor;
  const tenon_tensor* operator->() const { return tensor.get(); }
};

namespace extension {

constexpr uint32_t bit(int32_t kind) { return 1u << kind; }

// The arguments of a call, complete, in the order of the signature.
struct Call {
  const tenon_value* args;
  uint32_t nargs;
};

// A number where the function takes a tensor, in the dtype that it would have had as a weak scalar.
Tensor tensor_of_number(const tenon_value& number, const Call& call);

// How `T` is made from a boxed value: `kinds` it stands for, whether none is one of its values, its
// name in messages, and `hold`, whose result converts to T and lives until the function returns.
template <class T>
struct Argument;

// A tensor argument without counting a reference: the caller holds it.
class Held {
 public:
  Held(const tenon_value& value, const Call& call) {
    if (value.tag == TENON_VALUE_TENSOR || value.tag == TENON_VALUE_NONE) [[likely]] {
      tensor_ = Tensor::adopt(const_cast<tenon_tensor*>(tenon_arg_tensor(&value)));
    } else {
      tensor_ = tensor_of_number(value, call);
      is_owned_ = true;
    }
  }
  Held(const Held&) = delete;
  ~Held() {
    if (!is_owned_) (void)tensor_.release();
  }
  operator const Tensor&() const { return tensor_; }

 private:
  Tensor tensor_;
  bool is_owned_ = false;
};

template <>
struct Argument<Tensor> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_TENSOR);
  static constexpr bool takes_none = false;
  static constexpr const char* name = "const Tensor&";
  static Held hold(const tenon_value& value, const Call& call) { return {value, call}; }
};

template <>
struct Argument<std::optional<Tensor>> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_TENSOR);
  static constexpr bool takes_none = true;
  static constexpr const char* name = "const std::optional<Tensor>&";
  static std::optional<Tensor> hold(const tenon_value& value, const Call& call) {
    if (value.tag == TENON_VALUE_NONE) return std::nullopt;
    const Held held(value, call);
    return Tensor(held);
  }
};

// Views, for kernels. An argument that is absent is an empty view.
template <class V>
requires std::derived_from<V, TensorView>
struct Argument<V> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_TENSOR);
  static constexpr bool takes_none = true;
  static constexpr const char* name = "tenon::View";
  static V hold(const tenon_value& value, const Call&) {
    return V(TensorView(tenon_arg_tensor(&value)));
  }
};

// Numbers stay numbers: for functions that pass them on to operators.
template <>
struct Argument<TensorArg> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_TENSOR);
  static constexpr bool takes_none = true;
  static constexpr const char* name = "TensorArg";
  static TensorArg hold(const tenon_value& value, const Call&) { return value; }
};

template <>
struct Argument<TensorList> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_TENSORS);
  static constexpr bool takes_none = true;
  static constexpr const char* name = "TensorList";
  static TensorList hold(const tenon_value& value, const Call&) {
    if (value.tag != TENON_VALUE_TENSORS) return {};
    return {static_cast<tenon_tensor* const*>(value.v.p), value.aux};
  }
};

template <>
struct Argument<std::vector<Tensor>> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_TENSORS);
  static constexpr bool takes_none = true;
  static constexpr const char* name = "const std::vector<Tensor>&";
  static std::vector<Tensor> hold(const tenon_value& value, const Call& call) {
    const TensorList list = Argument<TensorList>::hold(value, call);
    std::vector<Tensor> tensors;
    tensors.reserve(list.size());
    for (uint64_t i = 0; i < list.size(); ++i) tensors.push_back(Tensor::borrow(list[i]));
    return tensors;
  }
};

template <>
struct Argument<int64_t> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_INT);
  static constexpr bool takes_none = false;
  static constexpr const char* name = "int64_t";
  static int64_t hold(const tenon_value& value, const Call&) { return value.v.i; }
};

template <>
struct Argument<int> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_INT);
  static constexpr bool takes_none = false;
  static constexpr const char* name = "int";
  static int hold(const tenon_value& value, const Call&) {
    using Limits = std::numeric_limits<int>;
    if (value.v.i < Limits::min() || value.v.i > Limits::max())
      throw Error(TENON_OUT_OF_RANGE,
                  "expected an integer of 32 bits, got " + std::to_string(value.v.i));
    return static_cast<int>(value.v.i);
  }
};

template <class T>
requires std::floating_point<T>
struct Argument<T> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_FLOAT);
  static constexpr bool takes_none = false;
  static constexpr const char* name = sizeof(T) == 8 ? "double" : "float";
  static T hold(const tenon_value& value, const Call&) {
    return static_cast<T>(tenon_arg_float(&value));
  }
};

template <>
struct Argument<bool> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_BOOL);
  static constexpr bool takes_none = false;
  static constexpr const char* name = "bool";
  static bool hold(const tenon_value& value, const Call&) { return value.v.i != 0; }
};

template <>
struct Argument<ScalarArg> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_SCALAR);
  static constexpr bool takes_none = false;
  static constexpr const char* name = "ScalarArg";
  static ScalarArg hold(const tenon_value& value, const Call&) { return value; }
};

template <class T>
requires std::same_as<T, std::string> || std::same_as<T, std::string_view>
struct Argument<T> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_STRING);
  static constexpr bool takes_none = false;
  static constexpr const char* name = "std::string_view";
  static T hold(const tenon_value& value, const Call&) {
    const char* text = tenon_arg_string(&value);
    return text ? T(text, value.aux) : T();
  }
};

template <>
struct Argument<Dtype> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_DTYPE);
  static constexpr bool takes_none = false;
  static constexpr const char* name = "tenon::Dtype";
  static Dtype hold(const tenon_value& value, const Call&) {
    return {static_cast<int32_t>(value.v.i)};
  }
};

template <>
struct Argument<Device> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_DEVICE);
  static constexpr bool takes_none = false;
  static constexpr const char* name = "tenon::Device";
  static Device hold(const tenon_value& value, const Call&) {
    return {static_cast<tenon_device_id>(value.v.i)};
  }
};

// Lists of numbers: as a vector of one's own, or as they lie.
template <class T>
inline constexpr bool kIsList = false;
template <class T>
requires std::same_as<T, int64_t> || std::same_as<T, double>
inline constexpr bool kIsList<std::vector<T>> = true;
template <class T>
requires std::same_as<T, int64_t> || std::same_as<T, double>
inline constexpr bool kIsList<List<T>> = true;
template <class T>
requires std::same_as<T, int64_t> || std::same_as<T, double>
inline constexpr bool kIsList<std::span<const T>> = true;

template <class T>
requires kIsList<T>
struct Argument<T> {
  static constexpr bool of_floats =
      std::same_as<std::remove_cvref_t<decltype(*std::declval<T>().begin())>, double>;
  static constexpr uint32_t kinds = bit(of_floats ? TENON_PARAM_FLOATS : TENON_PARAM_INTS);
  static constexpr bool takes_none = false;
  static constexpr const char* name =
      of_floats ? "std::span<const double>" : "std::span<const int64_t>";
  static T hold(const tenon_value& value, const Call&) {
    const auto count = tenon_arg_count(&value);
    if constexpr (of_floats)
      return make(tenon_arg_floats(&value), count);
    else
      return make(tenon_arg_ints(&value), count);
  }

 private:
  template <class Element>
  static T make(const Element* items, uint64_t count) {
    if constexpr (std::same_as<T, std::vector<Element>>)
      return T(items, items + count);
    else
      return T(items, count);
  }
};

template <class T>
requires(!std::same_as<T, Tensor>) struct Argument<std::optional<T>> {
  static constexpr uint32_t kinds = Argument<T>::kinds;
  static constexpr bool takes_none = true;
  static constexpr const char* name = Argument<T>::name;
  static std::optional<T> hold(const tenon_value& value, const Call& call) {
    if (value.tag == TENON_VALUE_NONE) return std::nullopt;
    return Argument<T>::hold(value, call);
  }
};

template <>
struct Argument<Unread> {
  static constexpr uint32_t kinds = ~0u;
  static constexpr bool takes_none = true;
  static constexpr const char* name = "tenon::Unread";
  static Unread hold(const tenon_value&, const Call&) { return {}; }
};

template <>
struct Argument<ShapeOnly> {
  static constexpr uint32_t kinds = bit(TENON_PARAM_TENSOR);
  static constexpr bool takes_none = true;
  static constexpr const char* name = "tenon::ShapeOnly";
  static ShapeOnly hold(const tenon_value& value, const Call&) {
    return {Tensor::borrow(const_cast<tenon_tensor*>(tenon_arg_tensor(&value)))};
  }
};

// Any parameter, by whatever reference it is taken.
template <class Parameter>
using ArgumentOf = Argument<std::remove_cvref_t<Parameter>>;

}  // namespace extension
}  // namespace tenon
