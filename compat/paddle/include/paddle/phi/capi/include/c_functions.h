// SPDX-License-Identifier: Apache-2.0
// The C functions of libpaddle.so. Kernels use them through the classes of wrappers.h.
//
// A function with `status` writes C_SUCCESS or what went wrong there; status may be NULL. The text
// of a failure appears in the error of the operator call. Functions are called from inside a kernel
// call, on its thread; PD_RegisterPhiKernel from static initialisers of a plugin that is being
// loaded.
#pragma once

#include <paddle/common/export.h>
#include <paddle/phi/capi/include/c_types.h>

#ifdef __cplusplus
extern "C" {
#endif

// -- registration
typedef void (*PD_KernelArgsDefFn)(const PD_KernelKey*, PD_Kernel*);
typedef void (*PD_KernelFn)(PD_KernelContext*);
// The strings and arrays are copied. `variadic` is not used: kernels are called with a context.
PADDLE_API void PD_RegisterPhiKernel(const char* name, const char* backend, PD_DataType dtype,
                                     PD_DataLayout layout, size_t nin, PD_KernelArgumentType* in,
                                     size_t nattr, PD_KernelArgumentType* attr, size_t nout,
                                     PD_KernelArgumentType* out, PD_KernelArgsDefFn args_def,
                                     PD_KernelFn fn, void* variadic);
PADDLE_API PD_DataType PD_KernelKeyGetDataType(const PD_KernelKey*);
PADDLE_API PD_DataLayout PD_KernelKeyGetLayout(const PD_KernelKey*);
PADDLE_API PD_KernelArgsDef* PD_KernelGetArgsDef(PD_Kernel*);
// Pointers to PD_TensorArgDef; the list's data is freed by PD_DeletePointerList.
PADDLE_API PD_List PD_KernelArgsDefGetInputArgDefs(PD_KernelArgsDef*);
PADDLE_API PD_List PD_KernelArgsDefGetOutputArgDefs(PD_KernelArgsDef*);
PADDLE_API void PD_TensorArgDefSetDataType(PD_TensorArgDef*, PD_DataType, PD_Status* status);
PADDLE_API void PD_TensorArgDefSetDataLayout(PD_TensorArgDef*, PD_DataLayout, PD_Status* status);

// -- arguments of a call. Indices count within inputs, attributes and outputs. NULL: absent.
PADDLE_API PD_DeviceContext* PD_KernelContextGetDeviceContext(PD_KernelContext*);
PADDLE_API PD_Tensor* PD_KernelContextInputAt(PD_KernelContext*, size_t index);
PADDLE_API PD_Tensor* PD_KernelContextOutputAt(PD_KernelContext*, size_t index);
// Fresh arrays of PD_Tensor*, freed by PD_DeletePointerList.
PADDLE_API PD_List PD_KernelContextMultiInputAt(PD_KernelContext*, size_t index);
PADDLE_API PD_List PD_KernelContextMultiOutputAt(PD_KernelContext*, size_t index);
PADDLE_API bool PD_KernelContextBoolAttrAt(PD_KernelContext*, size_t index);
PADDLE_API int32_t PD_KernelContextInt32AttrAt(PD_KernelContext*, size_t index);
PADDLE_API int64_t PD_KernelContextInt64AttrAt(PD_KernelContext*, size_t index);
PADDLE_API float PD_KernelContextFloatAttrAt(PD_KernelContext*, size_t index);
PADDLE_API double PD_KernelContextDoubleAttrAt(PD_KernelContext*, size_t index);
PADDLE_API PD_DataType PD_KernelContextDataTypeAttrAt(PD_KernelContext*, size_t index);
PADDLE_API PD_DataLayout PD_KernelContextDataLayoutAttrAt(PD_KernelContext*, size_t index);
// Borrowed for the call.
PADDLE_API PD_Scalar* PD_KernelContextScalarAttrAt(PD_KernelContext*, size_t index);
PADDLE_API PD_IntArray* PD_KernelContextIntArrayAttrAt(PD_KernelContext*, size_t index);
PADDLE_API PD_Place* PD_KernelContextPlaceAttrAt(PD_KernelContext*, size_t index);
PADDLE_API const char* PD_KernelContextStringAttrAt(PD_KernelContext*, size_t index);
PADDLE_API PD_List PD_KernelContextListBoolAttrAt(PD_KernelContext*, size_t index);  // uint8_t
PADDLE_API PD_List PD_KernelContextListInt32AttrAt(PD_KernelContext*, size_t index);
PADDLE_API PD_List PD_KernelContextListInt64AttrAt(PD_KernelContext*, size_t index);
PADDLE_API PD_List PD_KernelContextListFloatAttrAt(PD_KernelContext*, size_t index);
PADDLE_API PD_List PD_KernelContextListDoubleAttrAt(PD_KernelContext*, size_t index);
// Fresh arrays of pointers (PD_Scalar*, const char*), freed by PD_DeletePointerList.
PADDLE_API PD_List PD_KernelContextListScalarAttrAt(PD_KernelContext*, size_t index);
PADDLE_API PD_List PD_KernelContextListStringAttrAt(PD_KernelContext*, size_t index);
PADDLE_API void PD_DeletePointerList(PD_List);

// -- the device
// Give the tensor memory for its elements in `dtype`, or `requested` bytes if that is more; what it
// has is kept if it is enough and in the same place. context NULL: host memory. Returns the first
// element.
PADDLE_API void* PD_DeviceContextAllocateTensor(const PD_DeviceContext* context, PD_Tensor*,
                                                size_t requested, PD_DataType dtype,
                                                PD_Status* status);
PADDLE_API void* PD_DeviceContextGetStream(const PD_DeviceContext*, PD_Status* status);
PADDLE_API void PD_DeviceContextSetSeed(const PD_DeviceContext*, uint64_t seed, PD_Status* status);
PADDLE_API uint64_t PD_DeviceContextGetSeed(const PD_DeviceContext*, PD_Status* status);
PADDLE_API uint64_t PD_DeviceContextGetRandom(const PD_DeviceContext*, PD_Status* status);

// -- tensors: strides count elements, offsets bytes
PADDLE_API PD_Tensor* PD_NewTensor();
PADDLE_API void PD_DeleteTensor(PD_Tensor*);
PADDLE_API PD_DataType PD_TensorGetPDDataType(const PD_Tensor*, PD_Status* status);
PADDLE_API PD_DataLayout PD_TensorGetDataLayout(const PD_Tensor*, PD_Status* status);
PADDLE_API int64_t PD_TensorGetByteSize(const PD_Tensor*, PD_Status* status);  // of its elements
PADDLE_API void* PD_TensorGetDataPointer(const PD_Tensor*, PD_Status* status);
PADDLE_API int64_t PD_TensorGetElementCount(const PD_Tensor*, PD_Status* status);
PADDLE_API int64_t PD_TensorGetNumDims(const PD_Tensor*, PD_Status* status);  // -1: never set
PADDLE_API int64_t PD_TensorGetDim(const PD_Tensor*, size_t index, PD_Status* status);
PADDLE_API int64_t PD_TensorGetNumStrides(const PD_Tensor*, PD_Status* status);
PADDLE_API int64_t PD_TensorGetStride(const PD_Tensor*, size_t index, PD_Status* status);
PADDLE_API size_t PD_TensorGetOffset(const PD_Tensor*, PD_Status* status);
PADDLE_API void* PD_TensorGetHolder(const PD_Tensor*, PD_Status* status);  // equal: same storage
PADDLE_API bool PD_TensorIsInitialized(const PD_Tensor*, PD_Status* status);
PADDLE_API bool PD_TensorIsValid(const PD_Tensor*, PD_Status* status);
// Strides become those of a dense tensor. Memory stays.
PADDLE_API void PD_TensorSetDims(PD_Tensor*, int64_t ndims, const int64_t* dims, PD_Status* status);
PADDLE_API void PD_TensorSetStrides(PD_Tensor*, int64_t nstrides, const int64_t* strides,
                                    PD_Status* status);
PADDLE_API void PD_TensorSetOffset(PD_Tensor*, int64_t offset, PD_Status* status);
PADDLE_API void PD_TensorSetDataType(PD_Tensor*, PD_DataType, PD_Status* status);
PADDLE_API void PD_TensorSetDataLayout(PD_Tensor*, PD_DataLayout, PD_Status* status);
PADDLE_API void PD_TensorShareDataWith(PD_Tensor* dst, const PD_Tensor* src, PD_Status* status);
PADDLE_API void PD_TensorShareLoDWith(PD_Tensor* dst, const PD_Tensor* src, PD_Status* status);
// Level of detail: `offset` bounds the levels in `data`. The arrays are the caller's, for delete[].
PADDLE_API void PD_TensorGetLoD(const PD_Tensor*, PD_List* data, PD_List* offset,
                                PD_Status* status);
PADDLE_API void PD_TensorResetLoD(PD_Tensor*, PD_List data, PD_List offset, PD_Status* status);

// -- attributes
PADDLE_API PD_DataType PD_ScalarGetDataType(const PD_Scalar*);
PADDLE_API bool PD_ScalarGetBoolData(const PD_Scalar*);
PADDLE_API int8_t PD_ScalarGetInt8Data(const PD_Scalar*);
PADDLE_API int16_t PD_ScalarGetInt16Data(const PD_Scalar*);
PADDLE_API int32_t PD_ScalarGetInt32Data(const PD_Scalar*);
PADDLE_API int64_t PD_ScalarGetInt64Data(const PD_Scalar*);
PADDLE_API uint8_t PD_ScalarGetUInt8Data(const PD_Scalar*);
PADDLE_API uint16_t PD_ScalarGetUInt16Data(const PD_Scalar*);
PADDLE_API uint32_t PD_ScalarGetUInt32Data(const PD_Scalar*);
PADDLE_API uint64_t PD_ScalarGetUInt64Data(const PD_Scalar*);
PADDLE_API float PD_ScalarGetFloat32Data(const PD_Scalar*);
PADDLE_API double PD_ScalarGetFloat64Data(const PD_Scalar*);
PADDLE_API PD_List PD_IntArrayGetDataPointer(const PD_IntArray*);  // int64_t, borrowed
PADDLE_API size_t PD_IntArrayGetElementCount(const PD_IntArray*);
PADDLE_API bool PD_PlaceIsHost(const PD_Place*);
PADDLE_API int8_t PD_PlaceGetDeviceId(const PD_Place*);

#ifdef __cplusplus
}  // extern "C"
#endif
