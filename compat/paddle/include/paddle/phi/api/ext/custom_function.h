// SPDX-License-Identifier: Apache-2.0
// PD_KERNEL, PD_INFER_SHAPE, PD_INFER_DTYPE: an author's function, whatever its parameters, behind
// one signature, with a description of its parameters that is compared with the operator's when its
// library is loaded.
#pragma once

#include <paddle/phi/api/include/tensor.h>
#include <paddle/utils/any.h>
#include <paddle/utils/optional.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace paddle {

// What a parameter of an author's function is.
enum class ParameterKind : uint8_t {
  kValue,         // an input as the function sees it: tensor, shape or dtype
  kList,          // of an input list
  kOptional,      // of an optional input
  kOptionalList,  // of an optional input list
  kOutput,        // Tensor*
  kOutputList,    // std::vector<Tensor*>
  kAttribute,     // see `attribute`
  kListOrInts,    // std::vector<int64_t>: in a shape function an input's shape or an attribute, by
                  // position
};
struct Parameter {
  ParameterKind kind;
  const char* attribute;  // "std::vector<int>"; NULL if it is none
  bool is_mutable;        // Tensor&: written in place
};

// One input of a call, in the form that its declaration asks for. T is what an input is to the
// function: Tensor, its shape or its dtype.
template <typename T>
struct CustomInput {
  T value;
  std::vector<T> list;
  optional<T> maybe_value;
  optional<std::vector<T>> maybe_list;
};

// The arguments of one call of a kernel, in the order of the operator's inputs, attributes and
// outputs.
class PADDLE_API CustomOpKernelContext {
 public:
  struct Output {
    Tensor tensor;
    std::vector<Tensor> list;
  };
  std::vector<CustomInput<Tensor>> inputs;
  std::vector<any> attrs;
  std::vector<Output> outputs;  // without those that an input is turned into in place
  std::vector<Tensor> results;  // instead of outputs, what the function returned
};

// The arguments of a shape function (T = std::vector<int64_t>) or a dtype function (T = DataType).
template <typename T>
struct InferContext {
  std::vector<CustomInput<T>> inputs;
  std::vector<any> attrs;
};
using InferShapeContext = InferContext<std::vector<int64_t>>;
using InferDtypeContext = InferContext<DataType>;

// An author's function and what it takes. `run` is NULL where none was given.
struct KernelFunction {
  void (*run)(CustomOpKernelContext*) = nullptr;
  const Parameter* parameters = nullptr;
  size_t count = 0;
  bool returns_outputs = false;
};
struct InferShapeFunction {
  std::vector<std::vector<int64_t>> (*run)(InferShapeContext*) = nullptr;
  const Parameter* parameters = nullptr;
  size_t count = 0;
};
struct InferDtypeFunction {
  std::vector<DataType> (*run)(InferDtypeContext*) = nullptr;
  const Parameter* parameters = nullptr;
  size_t count = 0;
};

namespace detail {

// "int" for an attribute type, NULL for all others.
template <typename T>
constexpr const char* attribute_name() {
  if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_same_v<T, int>)
    return "int";
  else if constexpr (std::is_same_v<T, int64_t>)
    return "int64_t";
  else if constexpr (std::is_same_v<T, float>)
    return "float";
  else if constexpr (std::is_same_v<T, double>)
    return "double";
  else if constexpr (std::is_same_v<T, std::string>)
    return "std::string";
  else if constexpr (std::is_same_v<T, std::vector<int>>)
    return "std::vector<int>";
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    return "std::vector<int64_t>";
  else if constexpr (std::is_same_v<T, std::vector<float>>)
    return "std::vector<float>";
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return "std::vector<double>";
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return "std::vector<std::string>";
  else
    return nullptr;
}

template <typename>
inline constexpr bool always_false = false;

// `Value` is what an input is to the function: Tensor, std::vector<int64_t> or DataType.
template <typename Value, typename Argument>
constexpr Parameter describe() {
  using T = std::remove_cv_t<std::remove_reference_t<Argument>>;
  constexpr bool is_mutable =
      std::is_lvalue_reference_v<Argument> && !std::is_const_v<std::remove_reference_t<Argument>>;
  if constexpr (std::is_same_v<Value, std::vector<int64_t>> && std::is_same_v<T, Value>)
    return {ParameterKind::kListOrInts, attribute_name<T>(), false};
  else if constexpr (std::is_same_v<T, Value>)
    return {ParameterKind::kValue, nullptr, is_mutable};
  else if constexpr (std::is_same_v<T, std::vector<Value>>)
    return {ParameterKind::kList, nullptr, is_mutable};
  else if constexpr (std::is_same_v<T, optional<Value>>)
    return {ParameterKind::kOptional, nullptr, is_mutable};
  else if constexpr (std::is_same_v<T, optional<std::vector<Value>>>)
    return {ParameterKind::kOptionalList, nullptr, is_mutable};
  else if constexpr (std::is_same_v<T, Tensor*>)
    return {ParameterKind::kOutput, nullptr, false};
  else if constexpr (std::is_same_v<T, std::vector<Tensor*>>)
    return {ParameterKind::kOutputList, nullptr, false};
  else {
    static_assert(
        attribute_name<T>() != nullptr,
        "a custom operator's function takes tensors (const Tensor&, Tensor&, "
        "std::vector<Tensor>, paddle::optional of these), attributes (bool, int, int64_t, "
        "float, double, std::string and std::vectors of them) and outputs (Tensor*)");
    static_assert(!is_mutable, "attributes are taken by value or const reference");
    return {ParameterKind::kAttribute, attribute_name<T>(), false};
  }
}

template <typename Value, typename... Arguments>
inline constexpr Parameter kParameters[sizeof...(Arguments) + 1] = {describe<Value, Arguments>()...,
                                                                    {}};

// Parameter `index` of a function: inputs come first, then attributes, then outputs.
template <typename T, typename Context>
decltype(auto) argument(Context& context, size_t index) {
  size_t ninputs = context.inputs.size();
  if constexpr (std::is_same_v<T, Tensor*>) {
    return &context.outputs[index - ninputs - context.attrs.size()].tensor;
  } else if constexpr (std::is_same_v<T, std::vector<Tensor*>>) {
    std::vector<Tensor*> list;
    for (Tensor& tensor : context.outputs[index - ninputs - context.attrs.size()].list)
      list.push_back(&tensor);
    return list;
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>> &&
                       std::is_same_v<Context, InferShapeContext>) {
    // The one type that may be a shape or an attribute.
    return index < ninputs ? (context.inputs[index].value)
                           : (any_cast<T&>(context.attrs[index - ninputs]));
  } else if constexpr (attribute_name<T>() != nullptr) {
    return (any_cast<T&>(context.attrs[index - ninputs]));
  } else {
    auto& input = context.inputs[index];
    using Input = std::remove_reference_t<decltype(input)>;
    if constexpr (std::is_same_v<T, decltype(Input::value)>)
      return (input.value);
    else if constexpr (std::is_same_v<T, decltype(Input::list)>)
      return (input.list);
    else if constexpr (std::is_same_v<T, decltype(Input::maybe_value)>)
      return (input.maybe_value);
    else
      return (input.maybe_list);
  }
}

}  // namespace detail

template <typename Function, Function function>
struct CustomFunction;

template <typename Result, typename... Arguments, Result (*function)(Arguments...)>
struct CustomFunction<Result (*)(Arguments...), function> {
  static KernelFunction kernel() {
    static_assert(std::is_void_v<Result> || std::is_same_v<Result, std::vector<Tensor>>,
                  "a kernel returns std::vector<paddle::Tensor>, or void with outputs as Tensor*");
    return {run_kernel, detail::kParameters<Tensor, Arguments...>, sizeof...(Arguments),
            !std::is_void_v<Result>};
  }
  static InferShapeFunction infer_shape() {
    static_assert(std::is_same_v<Result, std::vector<std::vector<int64_t>>>,
                  "a shape function returns std::vector<std::vector<int64_t>>");
    return {run_infer<InferShapeContext>, detail::kParameters<std::vector<int64_t>, Arguments...>,
            sizeof...(Arguments)};
  }
  static InferDtypeFunction infer_dtype() {
    static_assert(std::is_same_v<Result, std::vector<DataType>>,
                  "a dtype function returns std::vector<paddle::DataType>");
    return {run_infer<InferDtypeContext>, detail::kParameters<DataType, Arguments...>,
            sizeof...(Arguments)};
  }

 private:
  template <typename Context, size_t... I>
  static Result call(Context& context, std::index_sequence<I...>) {
    return function(
        detail::argument<std::remove_cv_t<std::remove_reference_t<Arguments>>>(context, I)...);
  }
  static void run_kernel(CustomOpKernelContext* context) {
    if constexpr (std::is_void_v<Result>)
      call(*context, std::index_sequence_for<Arguments...>());
    else
      context->results = call(*context, std::index_sequence_for<Arguments...>());
  }
  template <typename Context>
  static Result run_infer(Context* context) {
    return call(*context, std::index_sequence_for<Arguments...>());
  }
};

}  // namespace paddle
