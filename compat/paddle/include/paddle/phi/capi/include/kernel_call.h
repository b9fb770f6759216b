// SPDX-License-Identifier: Apache-2.0
// From a kernel's parameter list: the kinds of its arguments, and a function that reads them from a
// call.
//
//   void Kernel(const Context&, inputs..., attributes..., outputs...)
#pragma once

#include <paddle/phi/capi/include/wrappers.h>

#include <type_traits>

namespace phi {
namespace capi {
namespace detail {

enum Category { kInput = 0, kAttribute = 1, kOutput = 2 };

// One specialisation for each parameter type that a kernel may have: what it is, and how to read
// it. What Read returns lives until the kernel has returned.
template <typename Parameter>
struct Argument {
  static_assert(sizeof(Parameter) == 0, "no parameter type of a kernel; see docs/paddle_compat.md");
};

template <Category kCategory, ::PD_KernelArgumentType kType>
struct Kind {
  static constexpr Category category = kCategory;
  static constexpr ::PD_KernelArgumentType type = kType;
};

// Tensors that a list argument names.
template <typename Pointer>
struct TensorList {
  explicit TensorList(PD_List list) {
    auto** raw = static_cast<PD_Tensor**>(list.data);
    tensors.reserve(list.size);  // pointers to the elements are taken
    for (size_t i = 0; i < list.size; ++i) {
      if (raw[i]) tensors.emplace_back(raw[i]);
      pointers.push_back(raw[i] ? &tensors.back() : nullptr);
    }
    PD_DeletePointerList(list);
  }
  operator const std::vector<Pointer>&() const { return pointers; }  // NOLINT
  std::vector<DenseTensor> tensors;
  std::vector<Pointer> pointers;
};

struct OutputTensor {
  explicit OutputTensor(PD_Tensor* raw) : tensor(raw) {}
  operator DenseTensor*() { return tensor.raw_data() ? &tensor : nullptr; }  // NOLINT
  DenseTensor tensor;
};

template <>
struct Argument<const DenseTensor&> : Kind<kInput, PD_ARG_TYPE_TENSOR> {
  static DenseTensor Read(PD_KernelContext* call, size_t index) {
    PD_Tensor* raw = PD_KernelContextInputAt(call, index);
    PD_CHECK(raw != nullptr, "input ", index, " of the kernel is absent");
    return DenseTensor(raw);
  }
};
template <>
struct Argument<const paddle::optional<DenseTensor>&> : Kind<kInput, PD_ARG_TYPE_OPTIONAL_TENSOR> {
  static paddle::optional<DenseTensor> Read(PD_KernelContext* call, size_t index) {
    paddle::optional<DenseTensor> result;
    if (PD_Tensor* raw = PD_KernelContextInputAt(call, index)) result.emplace(raw);
    return result;
  }
};
template <>
struct Argument<const std::vector<const DenseTensor*>&> : Kind<kInput, PD_ARG_TYPE_LIST_TENSOR> {
  static TensorList<const DenseTensor*> Read(PD_KernelContext* call, size_t index) {
    return TensorList<const DenseTensor*>(PD_KernelContextMultiInputAt(call, index));
  }
};
template <>
struct Argument<DenseTensor*> : Kind<kOutput, PD_ARG_TYPE_TENSOR> {
  static OutputTensor Read(PD_KernelContext* call, size_t index) {
    return OutputTensor(PD_KernelContextOutputAt(call, index));
  }
};
template <>
struct Argument<std::vector<DenseTensor*>> : Kind<kOutput, PD_ARG_TYPE_LIST_TENSOR> {
  static TensorList<DenseTensor*> Read(PD_KernelContext* call, size_t index) {
    return TensorList<DenseTensor*>(PD_KernelContextMultiOutputAt(call, index));
  }
};

#define PHI_CAPI_VALUE(CPP, TYPE, ...)                                                 \
  template <>                                                                          \
  struct Argument<CPP> : Kind<kAttribute, TYPE> {                                      \
    static typename std::decay<CPP>::type Read(PD_KernelContext* call, size_t index) { \
      __VA_ARGS__                                                                      \
    }                                                                                  \
  }
PHI_CAPI_VALUE(bool, PD_ARG_TYPE_BOOL, return PD_KernelContextBoolAttrAt(call, index););
PHI_CAPI_VALUE(int32_t, PD_ARG_TYPE_INT32, return PD_KernelContextInt32AttrAt(call, index););
PHI_CAPI_VALUE(int64_t, PD_ARG_TYPE_INT64, return PD_KernelContextInt64AttrAt(call, index););
PHI_CAPI_VALUE(float, PD_ARG_TYPE_FLOAT32, return PD_KernelContextFloatAttrAt(call, index););
PHI_CAPI_VALUE(double, PD_ARG_TYPE_FLOAT64, return PD_KernelContextDoubleAttrAt(call, index););
PHI_CAPI_VALUE(::PD_DataType, PD_ARG_TYPE_DATA_TYPE,
               return PD_KernelContextDataTypeAttrAt(call, index););
PHI_CAPI_VALUE(::PD_DataLayout, PD_ARG_TYPE_DATA_LAYOUT,
               return PD_KernelContextDataLayoutAttrAt(call, index););
PHI_CAPI_VALUE(Place, PD_ARG_TYPE_PLACE, return Place(PD_KernelContextPlaceAttrAt(call, index)););
PHI_CAPI_VALUE(const Place&, PD_ARG_TYPE_PLACE,
               return Place(PD_KernelContextPlaceAttrAt(call, index)););
PHI_CAPI_VALUE(const std::string&, PD_ARG_TYPE_STRING,
               return PD_KernelContextStringAttrAt(call, index););
PHI_CAPI_VALUE(const Scalar&, PD_ARG_TYPE_SCALAR,
               return Scalar(PD_KernelContextScalarAttrAt(call, index)););
PHI_CAPI_VALUE(const IntArray&, PD_ARG_TYPE_INT_ARRAY,
               return IntArray(PD_KernelContextIntArrayAttrAt(call, index)););
#define PHI_CAPI_LIST(CPP, ELEMENT, TYPE, NAME)                                        \
  PHI_CAPI_VALUE(const std::vector<CPP>&, TYPE,                                        \
                 const PD_List list = PD_KernelContextList##NAME##AttrAt(call, index); \
                 const auto* first = static_cast<const ELEMENT*>(list.data);           \
                 return std::vector<CPP>(first, first + list.size);)
PHI_CAPI_LIST(bool, uint8_t, PD_ARG_TYPE_LIST_BOOL, Bool);
PHI_CAPI_LIST(int32_t, int32_t, PD_ARG_TYPE_LIST_INT32, Int32);
PHI_CAPI_LIST(int64_t, int64_t, PD_ARG_TYPE_LIST_INT64, Int64);
PHI_CAPI_LIST(float, float, PD_ARG_TYPE_LIST_FLOAT32, Float);
PHI_CAPI_LIST(double, double, PD_ARG_TYPE_LIST_FLOAT64, Double);
#undef PHI_CAPI_LIST
PHI_CAPI_VALUE(const std::vector<std::string>&, PD_ARG_TYPE_LIST_STRING,
               const PD_List list = PD_KernelContextListStringAttrAt(call, index);
               const auto* first = static_cast<const char* const*>(list.data);
               std::vector<std::string> result(first, first + list.size);
               PD_DeletePointerList(list); return result;);
PHI_CAPI_VALUE(const std::vector<Scalar>&, PD_ARG_TYPE_LIST_SCALAR,
               const PD_List list = PD_KernelContextListScalarAttrAt(call, index);
               const auto* first = static_cast<const PD_Scalar* const*>(list.data);
               std::vector<Scalar> result;
               for (size_t i = 0; i < list.size; ++i) result.emplace_back(first[i]);
               PD_DeletePointerList(list); return result;);
#undef PHI_CAPI_VALUE

// How many of the parameters before `end` are of the category of the one at `end`.
template <size_t kCount>
constexpr size_t IndexInCategory(const Category (&categories)[kCount], size_t end) {
  size_t count = 0;
  for (size_t i = 0; i < end; ++i) count += categories[i] == categories[end];
  return count;
}
template <size_t kCount>
constexpr bool InOrder(const Category (&categories)[kCount]) {
  for (size_t i = 1; i < kCount; ++i)
    if (categories[i] < categories[i - 1]) return false;
  return true;
}

template <typename Function>
struct KernelTraits;
template <typename... Parameters>
struct KernelTraits<void (*)(const DeviceContext&, Parameters...)> {
  static_assert(sizeof...(Parameters) > 0, "a kernel has at least one output");
  static_assert(InOrder({Argument<Parameters>::category...}),
                "the order of a kernel's parameters is inputs, attributes, outputs");

  // Kinds of one category, in order.
  static std::vector<::PD_KernelArgumentType> Types(Category wanted) {
    const ::PD_KernelArgumentType types[] = {Argument<Parameters>::type...};
    const Category categories[] = {Argument<Parameters>::category...};
    std::vector<::PD_KernelArgumentType> result;
    for (size_t i = 0; i < sizeof...(Parameters); ++i)
      if (categories[i] == wanted) result.push_back(types[i]);
    return result;
  }

  using Function = void (*)(const DeviceContext&, Parameters...);
  static void Call(Function kernel, PD_KernelContext* call) {
    Call(kernel, call, std::index_sequence_for<Parameters...>());
  }

 private:
  template <size_t... kIndex>
  static void Call(Function kernel, PD_KernelContext* call, std::index_sequence<kIndex...>) {
    constexpr Category categories[] = {Argument<Parameters>::category...};
    const DeviceContext context(PD_KernelContextGetDeviceContext(call));
    kernel(context, Argument<Parameters>::Read(call, IndexInCategory(categories, kIndex))...);
  }
};

}  // namespace detail
}  // namespace capi
}  // namespace phi
