// SPDX-License-Identifier: Apache-2.0
// MIOpen, opened at run time: the functions that the convolutions need.
//
// Source of the signatures: MIOpen's API reference and miopen.h of ROCm 6. tests/gpu/declarations compares
// them with the header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dnn/dnn.hpp"

namespace gpu::dnn {

using TensorDesc = void*;
using ConvolutionDesc = void*;

// miopenConvSolution_t
struct Solution {
  float milliseconds;
  size_t workspace_bytes;
  uint64_t id;
  int algorithm;
};

// X(result, member, name, parameters)
// clang-format off
#define TENON_MIOPEN_FUNCTIONS(X)                                                                           \
  X(const char*, error_text, miopenGetErrorString, (Status))                                                \
  X(Status, create, miopenCreate, (Handle* out))                                                            \
  X(Status, destroy, miopenDestroy, (Handle))                                                               \
  X(Status, set_stream, miopenSetStream, (Handle, void* stream))                                            \
  X(Status, tensor_create, miopenCreateTensorDescriptor, (TensorDesc* out))                                 \
  X(Status, tensor_destroy, miopenDestroyTensorDescriptor, (TensorDesc))                                    \
  X(Status, tensor_set, miopenSetTensorDescriptor,                                                          \
    (TensorDesc, int type, int ndim, const int* shape, const int* strides))                                 \
  X(Status, convolution_create, miopenCreateConvolutionDescriptor, (ConvolutionDesc* out))                  \
  X(Status, convolution_destroy, miopenDestroyConvolutionDescriptor, (ConvolutionDesc))                     \
  X(Status, convolution_set, miopenInitConvolutionNdDescriptor,                                             \
    (ConvolutionDesc, int axes, const int* padding, const int* stride, const int* dilation, int mode))      \
  X(Status, convolution_set_groups, miopenSetConvolutionGroupCount, (ConvolutionDesc, int groups))          \
  X(Status, convolution_set_attribute, miopenSetConvolutionAttribute,                                       \
    (ConvolutionDesc, int attribute, int value))                                                            \
  X(Status, count_forward, miopenConvolutionForwardGetSolutionCount,                                        \
    (Handle, TensorDesc w, TensorDesc x, ConvolutionDesc, TensorDesc y, size_t* count))                     \
  X(Status, count_input_grad, miopenConvolutionBackwardDataGetSolutionCount,                                \
    (Handle, TensorDesc dy, TensorDesc w, ConvolutionDesc, TensorDesc dx, size_t* count))                   \
  X(Status, count_weight_grad, miopenConvolutionBackwardWeightsGetSolutionCount,                            \
    (Handle, TensorDesc dy, TensorDesc x, ConvolutionDesc, TensorDesc dw, size_t* count))                   \
  X(Status, list_forward, miopenConvolutionForwardGetSolution,                                              \
    (Handle, TensorDesc w, TensorDesc x, ConvolutionDesc, TensorDesc y, size_t wanted, size_t* found,       \
     Solution* out))                                                                                        \
  X(Status, list_input_grad, miopenConvolutionBackwardDataGetSolution,                                      \
    (Handle, TensorDesc dy, TensorDesc w, ConvolutionDesc, TensorDesc dx, size_t wanted, size_t* found,     \
     Solution* out))                                                                                        \
  X(Status, list_weight_grad, miopenConvolutionBackwardWeightsGetSolution,                                  \
    (Handle, TensorDesc dy, TensorDesc x, ConvolutionDesc, TensorDesc dw, size_t wanted, size_t* found,     \
     Solution* out))                                                                                        \
  X(Status, forward, miopenConvolutionForwardImmediate,                                                     \
    (Handle, TensorDesc, const void* w, TensorDesc, const void* x, ConvolutionDesc, TensorDesc, void* y,    \
     void* workspace, size_t workspace_bytes, uint64_t solution))                                           \
  X(Status, input_grad, miopenConvolutionBackwardDataImmediate,                                             \
    (Handle, TensorDesc, const void* dy, TensorDesc, const void* w, ConvolutionDesc, TensorDesc, void* dx,  \
     void* workspace, size_t workspace_bytes, uint64_t solution))                                           \
  X(Status, weight_grad, miopenConvolutionBackwardWeightsImmediate,                                         \
    (Handle, TensorDesc, const void* dy, TensorDesc, const void* x, ConvolutionDesc, TensorDesc, void* dw,  \
     void* workspace, size_t workspace_bytes, uint64_t solution))
// clang-format on

struct Library {
#define TENON_MIOPEN_MEMBER(result, member, name, parameters) result(*member) parameters;
  TENON_MIOPEN_FUNCTIONS(TENON_MIOPEN_MEMBER)
#undef TENON_MIOPEN_MEMBER
};

// Numbers of miopen.h.
namespace number {
inline constexpr int kHalf = 0, kFloat = 1, kBfloat16 = 5;  // miopenDataType_t
inline constexpr int kConvolution = 0;                      // miopenConvolutionMode_t
inline constexpr int kDeterministic = 1;                    // miopenConvolutionAttrib_t
}  // namespace number

// NULL: it is absent.
const Library* library();

}  // namespace gpu::dnn
