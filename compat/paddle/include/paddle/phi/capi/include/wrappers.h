// SPDX-License-Identifier: Apache-2.0
// The classes that kernels are written with, over the C functions. C++14.
#pragma once

#include <paddle/common/exception.h>
#include <paddle/phi/capi/include/c_functions.h>
#include <paddle/phi/common/bfloat16.h>
#include <paddle/phi/common/complex.h>
#include <paddle/phi/common/float16.h>
#include <paddle/utils/optional.h>

#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#define PD_CHECK_STATUS(STATUS) \
  PD_CHECK((STATUS) == C_SUCCESS, "a function of the host failed with status ", (STATUS))

namespace phi {

using float16 = dtype::float16;
using bfloat16 = dtype::bfloat16;
using DataType = ::PD_DataType;
using DataLayout = ::PD_DataLayout;
using LoD = std::vector<std::vector<size_t>>;

namespace capi {

using LoD = ::phi::LoD;

// -- C++ types and their dtypes
template <typename T>
struct CppTypeToPDType;
template <::PD_DataType kType>
struct PDTypeToCppType;
#define PHI_CAPI_TYPE(CPP, PD)                           \
  template <>                                            \
  struct CppTypeToPDType<CPP> {                          \
    constexpr static ::PD_DataType Type() { return PD; } \
  };                                                     \
  template <>                                            \
  struct PDTypeToCppType<PD> {                           \
    using type = CPP;                                    \
  }
PHI_CAPI_TYPE(bool, ::C_DataType::BOOL);
PHI_CAPI_TYPE(uint8_t, ::C_DataType::UINT8);
PHI_CAPI_TYPE(uint16_t, ::C_DataType::UINT16);
PHI_CAPI_TYPE(uint32_t, ::C_DataType::UINT32);
PHI_CAPI_TYPE(uint64_t, ::C_DataType::UINT64);
PHI_CAPI_TYPE(int8_t, ::C_DataType::INT8);
PHI_CAPI_TYPE(int16_t, ::C_DataType::INT16);
PHI_CAPI_TYPE(int32_t, ::C_DataType::INT32);
PHI_CAPI_TYPE(int64_t, ::C_DataType::INT64);
PHI_CAPI_TYPE(dtype::float16, ::C_DataType::FLOAT16);
PHI_CAPI_TYPE(dtype::bfloat16, ::C_DataType::BFLOAT16);
PHI_CAPI_TYPE(float, ::C_DataType::FLOAT32);
PHI_CAPI_TYPE(double, ::C_DataType::FLOAT64);
PHI_CAPI_TYPE(dtype::complex<float>, ::C_DataType::COMPLEX64);
PHI_CAPI_TYPE(dtype::complex<double>, ::C_DataType::COMPLEX128);
#undef PHI_CAPI_TYPE

// Calls FUNCTION(ARGS..., &status) and throws if it failed.
#define PHI_CAPI_CALL(...)        \
  ::PD_Status status = C_SUCCESS; \
  __VA_ARGS__;                    \
  PD_CHECK_STATUS(status)
#define PHI_CAPI_RETURN(...)      \
  ::PD_Status status = C_SUCCESS; \
  auto result = __VA_ARGS__;      \
  PD_CHECK_STATUS(status);        \
  return result

class Place {
 public:
  explicit Place(const PD_Place* raw) : raw_(raw) {}
  bool is_host() const { return PD_PlaceIsHost(raw_); }
  int8_t GetDeviceID() const { return PD_PlaceGetDeviceId(raw_); }
  const PD_Place* raw_data() const { return raw_; }

 private:
  const PD_Place* raw_;
};

class Scalar {
 public:
  explicit Scalar(const PD_Scalar* raw) : raw_(raw) {}
  template <typename T>
  T to() const {
    return Read(static_cast<T*>(nullptr));
  }
  ::PD_DataType dtype() const { return PD_ScalarGetDataType(raw_); }
  const PD_Scalar* raw_data() const { return raw_; }

 private:
  bool Read(bool*) const { return PD_ScalarGetBoolData(raw_); }
  int8_t Read(int8_t*) const { return PD_ScalarGetInt8Data(raw_); }
  int16_t Read(int16_t*) const { return PD_ScalarGetInt16Data(raw_); }
  int32_t Read(int32_t*) const { return PD_ScalarGetInt32Data(raw_); }
  int64_t Read(int64_t*) const { return PD_ScalarGetInt64Data(raw_); }
  uint8_t Read(uint8_t*) const { return PD_ScalarGetUInt8Data(raw_); }
  uint16_t Read(uint16_t*) const { return PD_ScalarGetUInt16Data(raw_); }
  uint32_t Read(uint32_t*) const { return PD_ScalarGetUInt32Data(raw_); }
  uint64_t Read(uint64_t*) const { return PD_ScalarGetUInt64Data(raw_); }
  float Read(float*) const { return PD_ScalarGetFloat32Data(raw_); }
  double Read(double*) const { return PD_ScalarGetFloat64Data(raw_); }
  // float16, bfloat16, complex: from the double that is held or stands for what is.
  template <typename T>
  T Read(T*) const {
    return static_cast<T>(PD_ScalarGetFloat64Data(raw_));
  }

  const PD_Scalar* raw_;
};

class IntArray {
 public:
  explicit IntArray(const PD_IntArray* raw) : raw_(raw) {}
  size_t size() const { return PD_IntArrayGetElementCount(raw_); }
  std::vector<int64_t> GetData() const {
    const PD_List list = PD_IntArrayGetDataPointer(raw_);
    const auto* first = static_cast<const int64_t*>(list.data);
    return std::vector<int64_t>(first, first + list.size);
  }
  const PD_IntArray* raw_data() const { return raw_; }

 private:
  const PD_IntArray* raw_;
};

// A tensor of the host, or a new one. A copy is a tensor of its own over the same memory.
class DenseTensor {
 public:
  DenseTensor() : raw_(PD_NewTensor()), own_(true) {}
  explicit DenseTensor(PD_Tensor* raw) : raw_(raw), own_(false) {}
  DenseTensor(const DenseTensor& other) : DenseTensor() {
    if (other.initialized()) {
      ShareDataWith(other);
    } else {
      if (PD_TensorGetNumDims(other.raw_, nullptr) >= 0) Resize(other.dims());
      set_dtype(other.dtype());
      set_layout(other.layout());
    }
  }
  DenseTensor(DenseTensor&& other) noexcept : raw_(other.raw_), own_(other.own_) {
    other.raw_ = nullptr;
    other.own_ = false;
  }
  DenseTensor& operator=(DenseTensor other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(own_, other.own_);
    return *this;
  }
  ~DenseTensor() {
    if (own_) PD_DeleteTensor(raw_);
  }

  PD_Tensor* raw_data() const { return raw_; }
  bool own_data() const { return own_; }
  bool valid() const { return raw_ && PD_TensorIsValid(raw_, nullptr); }
  bool initialized() const { return raw_ && PD_TensorIsInitialized(raw_, nullptr); }
  void* Holder() const { PHI_CAPI_RETURN(PD_TensorGetHolder(raw_, &status)); }

  std::vector<int64_t> dims() const {
    return ReadAll(PD_TensorGetNumDims(raw_, nullptr), PD_TensorGetDim);
  }
  std::vector<int64_t> strides() const {
    return ReadAll(PD_TensorGetNumStrides(raw_, nullptr), PD_TensorGetStride);
  }
  int64_t numel() const { PHI_CAPI_RETURN(PD_TensorGetElementCount(raw_, &status)); }
  ::PD_DataType dtype() const { PHI_CAPI_RETURN(PD_TensorGetPDDataType(raw_, &status)); }
  ::PD_DataLayout layout() const { PHI_CAPI_RETURN(PD_TensorGetDataLayout(raw_, &status)); }
  size_t offset() const { PHI_CAPI_RETURN(PD_TensorGetOffset(raw_, &status)); }
  int64_t memory_size() const { PHI_CAPI_RETURN(PD_TensorGetByteSize(raw_, &status)); }

  // Never const: kernels write through the tensors that they allocated, whatever they call them.
  template <typename T>
  T* data() const {
    return static_cast<T*>(data());
  }
  void* data() const { PHI_CAPI_RETURN(PD_TensorGetDataPointer(raw_, &status)); }

  void Resize(const std::vector<int64_t>& dims) {
    PHI_CAPI_CALL(PD_TensorSetDims(raw_, static_cast<int64_t>(dims.size()), dims.data(), &status));
  }
  void set_strides(const std::vector<int64_t>& strides) {
    PHI_CAPI_CALL(
        PD_TensorSetStrides(raw_, static_cast<int64_t>(strides.size()), strides.data(), &status));
  }
  void set_offset(int64_t offset) { PHI_CAPI_CALL(PD_TensorSetOffset(raw_, offset, &status)); }
  void set_dtype(::PD_DataType dtype) { PHI_CAPI_CALL(PD_TensorSetDataType(raw_, dtype, &status)); }
  void set_layout(::PD_DataLayout layout) {
    PHI_CAPI_CALL(PD_TensorSetDataLayout(raw_, layout, &status));
  }

  DenseTensor& ShareDataWith(const DenseTensor& source) {
    PHI_CAPI_CALL(PD_TensorShareDataWith(raw_, source.raw_, &status));
    return *this;
  }
  void share_lod(const DenseTensor& source) {
    PHI_CAPI_CALL(PD_TensorShareLoDWith(raw_, source.raw_, &status));
  }
  LoD lod() const {
    PD_List data = {0, nullptr}, offset = {0, nullptr};
    PHI_CAPI_CALL(PD_TensorGetLoD(raw_, &data, &offset, &status));
    const std::unique_ptr<size_t[]> numbers(static_cast<size_t*>(data.data));
    const std::unique_ptr<size_t[]> bounds(static_cast<size_t*>(offset.data));
    LoD result;
    for (size_t i = 0; i + 1 < offset.size; ++i)
      result.emplace_back(numbers.get() + bounds[i], numbers.get() + bounds[i + 1]);
    return result;
  }
  void ResetLoD(const LoD& lod) {
    std::vector<size_t> numbers, bounds = {0};
    for (const auto& level : lod) {
      numbers.insert(numbers.end(), level.begin(), level.end());
      bounds.push_back(numbers.size());
    }
    PHI_CAPI_CALL(PD_TensorResetLoD(raw_, {numbers.size(), numbers.data()},
                                    {bounds.size(), bounds.data()}, &status));
  }

 private:
  std::vector<int64_t> ReadAll(int64_t count,
                               int64_t (*read)(const PD_Tensor*, size_t, PD_Status*)) const {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < count; ++i) {
      ::PD_Status status = C_SUCCESS;
      result.push_back(read(raw_, static_cast<size_t>(i), &status));
      PD_CHECK_STATUS(status);
    }
    return result;
  }

  PD_Tensor* raw_;
  bool own_;
};

class DeviceContext {
 public:
  explicit DeviceContext(PD_DeviceContext* raw) : raw_(raw) {}

  // Memory on the device, or on the host; see PD_DeviceContextAllocateTensor.
  template <typename T>
  T* Alloc(DenseTensor* tensor, int64_t requested = 0) const {
    return static_cast<T*>(Alloc(tensor, CppTypeToPDType<T>::Type(), requested));
  }
  void* Alloc(DenseTensor* tensor, ::PD_DataType dtype, int64_t requested = 0) const {
    return Allocate(raw_, tensor, dtype, requested);
  }
  template <typename T>
  T* HostAlloc(DenseTensor* tensor, int64_t requested = 0) const {
    return static_cast<T*>(HostAlloc(tensor, CppTypeToPDType<T>::Type(), requested));
  }
  void* HostAlloc(DenseTensor* tensor, ::PD_DataType dtype, int64_t requested = 0) const {
    return Allocate(nullptr, tensor, dtype, requested);
  }

  void* stream() const { PHI_CAPI_RETURN(PD_DeviceContextGetStream(raw_, &status)); }
  uint64_t seed() const { PHI_CAPI_RETURN(PD_DeviceContextGetSeed(raw_, &status)); }
  void seed(uint64_t seed) const { PHI_CAPI_CALL(PD_DeviceContextSetSeed(raw_, seed, &status)); }
  uint64_t random() const { PHI_CAPI_RETURN(PD_DeviceContextGetRandom(raw_, &status)); }
  PD_DeviceContext* raw_data() const { return raw_; }

 private:
  static void* Allocate(const PD_DeviceContext* where, DenseTensor* tensor, ::PD_DataType dtype,
                        int64_t requested) {
    PHI_CAPI_RETURN(PD_DeviceContextAllocateTensor(where, tensor->raw_data(),
                                                   static_cast<size_t>(requested), dtype, &status));
  }

  PD_DeviceContext* raw_;
};

#undef PHI_CAPI_CALL
#undef PHI_CAPI_RETURN

}  // namespace capi

using Context = capi::DeviceContext;
using DenseTensor = capi::DenseTensor;
using Scalar = capi::Scalar;
using IntArray = capi::IntArray;
using Place = capi::Place;

}  // namespace phi
