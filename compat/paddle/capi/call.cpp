// SPDX-License-Identifier: Apache-2.0
// What a kernel reads from its call: the device, tensors, attributes.
#include "capi/objects.hpp"

using namespace tenon::paddle;

namespace {

template <typename T>
const T& at(const std::vector<T>& list, size_t index, const char* what) {
  if (index < list.size()) return list[index];
  throw Error(TENON_INTERNAL, std::string("the kernel asks for ") + what + " " +
                                  std::to_string(index) + " of " + std::to_string(list.size()));
}

PD_Tensor* tensor_at(const std::vector<PD_TensorSlot>& slots, size_t index, const char* what) {
  return capi<PD_Tensor*>(nullptr, nullptr, [&] {
    const PD_TensorSlot& slot = at(slots, index, what);
    return slot.empty() ? nullptr : slot[0];
  });
}

PD_List fresh_list(const std::vector<void*>& pointers) {
  auto** copy = new void*[pointers.size()];
  std::copy(pointers.begin(), pointers.end(), copy);
  return {pointers.size(), copy};
}

PD_List tensors_at(const std::vector<PD_TensorSlot>& slots, size_t index, const char* what) {
  return capi(nullptr, PD_List{0, nullptr}, [&] {
    const PD_TensorSlot& slot = at(slots, index, what);
    return fresh_list({slot.begin(), slot.end()});
  });
}

// The attribute, whose kind the registration promised and the caller checked.
template <typename T>
T* attribute_at(PD_KernelContext* call, size_t index) {
  return capi<T*>(nullptr, nullptr, [&]() -> T* {
    const auto* found = std::get_if<T>(&at(call->attributes, index, "attribute"));
    if (!found)
      throw Error(TENON_INTERNAL,
                  "the kernel reads attribute " + std::to_string(index) + " as another kind");
    return const_cast<T*>(found);
  });
}
template <typename T>
T value_at(PD_KernelContext* call, size_t index) {
  const T* found = attribute_at<T>(call, index);
  return found ? *found : T{};
}
template <typename T>
PD_List list_at(PD_KernelContext* call, size_t index) {
  auto* found = attribute_at<std::vector<T>>(call, index);
  return found ? PD_List{found->size(), found->data()} : PD_List{0, nullptr};
}

template <typename T>
T scalar_as(const PD_Scalar* scalar) {
  return std::visit([](auto value) { return static_cast<T>(value); }, scalar->value);
}

}  // namespace

PD_DeviceContext* PD_KernelContextGetDeviceContext(PD_KernelContext* call) { return &call->device; }
PD_Tensor* PD_KernelContextInputAt(PD_KernelContext* call, size_t index) {
  return tensor_at(call->inputs, index, "input");
}
PD_Tensor* PD_KernelContextOutputAt(PD_KernelContext* call, size_t index) {
  return tensor_at(call->outputs, index, "output");
}
PD_List PD_KernelContextMultiInputAt(PD_KernelContext* call, size_t index) {
  return tensors_at(call->inputs, index, "input");
}
PD_List PD_KernelContextMultiOutputAt(PD_KernelContext* call, size_t index) {
  return tensors_at(call->outputs, index, "output");
}

#define TENON_PADDLE_VALUE(NAME, TYPE)                                        \
  TYPE PD_KernelContext##NAME##AttrAt(PD_KernelContext* call, size_t index) { \
    return value_at<TYPE>(call, index);                                       \
  }
TENON_PADDLE_VALUE(Bool, bool)
TENON_PADDLE_VALUE(Int32, int32_t)
TENON_PADDLE_VALUE(Int64, int64_t)
TENON_PADDLE_VALUE(Float, float)
TENON_PADDLE_VALUE(Double, double)
TENON_PADDLE_VALUE(DataType, PD_DataType)
TENON_PADDLE_VALUE(DataLayout, PD_DataLayout)
#undef TENON_PADDLE_VALUE

#define TENON_PADDLE_OBJECT(NAME, TYPE)                                        \
  TYPE* PD_KernelContext##NAME##AttrAt(PD_KernelContext* call, size_t index) { \
    return attribute_at<TYPE>(call, index);                                    \
  }
TENON_PADDLE_OBJECT(Scalar, PD_Scalar)
TENON_PADDLE_OBJECT(IntArray, PD_IntArray)
TENON_PADDLE_OBJECT(Place, PD_Place)
#undef TENON_PADDLE_OBJECT

#define TENON_PADDLE_LIST(NAME, TYPE)                                                \
  PD_List PD_KernelContextList##NAME##AttrAt(PD_KernelContext* call, size_t index) { \
    return list_at<TYPE>(call, index);                                               \
  }
TENON_PADDLE_LIST(Bool, uint8_t)
TENON_PADDLE_LIST(Int32, int32_t)
TENON_PADDLE_LIST(Int64, int64_t)
TENON_PADDLE_LIST(Float, float)
TENON_PADDLE_LIST(Double, double)
#undef TENON_PADDLE_LIST

const char* PD_KernelContextStringAttrAt(PD_KernelContext* call, size_t index) {
  const auto* text = attribute_at<std::string>(call, index);
  return text ? text->c_str() : "";
}
PD_List PD_KernelContextListScalarAttrAt(PD_KernelContext* call, size_t index) {
  return capi(nullptr, PD_List{0, nullptr}, [&] {
    std::vector<void*> pointers;
    if (auto* found = attribute_at<std::vector<PD_Scalar>>(call, index))
      for (PD_Scalar& scalar : *found) pointers.push_back(&scalar);
    return fresh_list(pointers);
  });
}
PD_List PD_KernelContextListStringAttrAt(PD_KernelContext* call, size_t index) {
  return capi(nullptr, PD_List{0, nullptr}, [&] {
    std::vector<void*> pointers;
    if (auto* found = attribute_at<std::vector<std::string>>(call, index))
      for (std::string& text : *found) pointers.push_back(text.data());
    return fresh_list(pointers);
  });
}
void PD_DeletePointerList(PD_List list) { delete[] static_cast<void**>(list.data); }

void* PD_DeviceContextGetStream(const PD_DeviceContext* context, PD_Status* status) {
  return capi<void*>(status, nullptr, [&] { return context->stream; });
}
// The seed belongs to the call: it comes from Tenon's generator, which is seeded for the whole
// process.
void PD_DeviceContextSetSeed(const PD_DeviceContext* context, uint64_t seed, PD_Status* status) {
  capi(status, [&] { const_cast<PD_DeviceContext*>(context)->seed = seed; });
}
uint64_t PD_DeviceContextGetSeed(const PD_DeviceContext* context, PD_Status* status) {
  return capi<uint64_t>(status, 0, [&] { return context->seed; });
}
uint64_t PD_DeviceContextGetRandom(const PD_DeviceContext* context, PD_Status* status) {
  return capi<uint64_t>(status, 0, [&] {
    // SplitMix64: the draws of one call, from its seed.
    uint64_t z =
        context->seed + 0x9e3779b97f4a7c15u * ++const_cast<PD_DeviceContext*>(context)->draws;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  });
}

PD_DataType PD_ScalarGetDataType(const PD_Scalar* scalar) {
  constexpr PD_DataType kTypes[] = {BOOL, INT64, FLOAT64};
  return kTypes[scalar->value.index()];
}
#define TENON_PADDLE_SCALAR(NAME, TYPE) \
  TYPE PD_ScalarGet##NAME##Data(const PD_Scalar* scalar) { return scalar_as<TYPE>(scalar); }
TENON_PADDLE_SCALAR(Bool, bool)
TENON_PADDLE_SCALAR(Int8, int8_t)
TENON_PADDLE_SCALAR(Int16, int16_t)
TENON_PADDLE_SCALAR(Int32, int32_t)
TENON_PADDLE_SCALAR(Int64, int64_t)
TENON_PADDLE_SCALAR(UInt8, uint8_t)
TENON_PADDLE_SCALAR(UInt16, uint16_t)
TENON_PADDLE_SCALAR(UInt32, uint32_t)
TENON_PADDLE_SCALAR(UInt64, uint64_t)
TENON_PADDLE_SCALAR(Float32, float)
TENON_PADDLE_SCALAR(Float64, double)
#undef TENON_PADDLE_SCALAR

PD_List PD_IntArrayGetDataPointer(const PD_IntArray* array) {
  return {array->values.size(), const_cast<int64_t*>(array->values.data())};
}
size_t PD_IntArrayGetElementCount(const PD_IntArray* array) { return array->values.size(); }
bool PD_PlaceIsHost(const PD_Place* place) { return place->is_host; }
int8_t PD_PlaceGetDeviceId(const PD_Place* place) { return place->device; }
