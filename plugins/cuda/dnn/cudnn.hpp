// SPDX-License-Identifier: Apache-2.0
// cuDNN 9, opened at run time: the functions that the convolutions need.
//
// Source of the signatures: the cuDNN API reference (9), chapters cudnn_ops and cudnn_cnn.
// tests/gpu/declarations compares them with the headers.
#pragma once

#include <cstddef>

#include "dnn/dnn.hpp"

namespace gpu::dnn {

using TensorDesc = void*;
using FilterDesc = void*;
using ConvolutionDesc = void*;

// cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t, which are alike.
struct AlgorithmResult {
  int algorithm;
  Status status;
  float milliseconds;
  size_t workspace_bytes;
  int is_deterministic;
  int math;
  int reserved[3];
};

// X(result, member, name, parameters)
// clang-format off
#define TENON_CUDNN_FUNCTIONS(X)                                                                            \
  X(size_t, version, cudnnGetVersion, ())                                                                   \
  X(const char*, error_text, cudnnGetErrorString, (Status))                                                 \
  X(Status, create, cudnnCreate, (Handle* out))                                                             \
  X(Status, destroy, cudnnDestroy, (Handle))                                                                \
  X(Status, set_stream, cudnnSetStream, (Handle, void* stream))                                             \
  X(Status, tensor_create, cudnnCreateTensorDescriptor, (TensorDesc* out))                                  \
  X(Status, tensor_destroy, cudnnDestroyTensorDescriptor, (TensorDesc))                                     \
  X(Status, tensor_set, cudnnSetTensorNdDescriptor,                                                         \
    (TensorDesc, int type, int ndim, const int* shape, const int* strides))                                 \
  X(Status, filter_create, cudnnCreateFilterDescriptor, (FilterDesc* out))                                  \
  X(Status, filter_destroy, cudnnDestroyFilterDescriptor, (FilterDesc))                                     \
  X(Status, filter_set, cudnnSetFilterNdDescriptor,                                                         \
    (FilterDesc, int type, int format, int ndim, const int* shape))                                         \
  X(Status, convolution_create, cudnnCreateConvolutionDescriptor, (ConvolutionDesc* out))                   \
  X(Status, convolution_destroy, cudnnDestroyConvolutionDescriptor, (ConvolutionDesc))                      \
  X(Status, convolution_set, cudnnSetConvolutionNdDescriptor,                                               \
    (ConvolutionDesc, int axes, const int* padding, const int* stride, const int* dilation, int mode,       \
     int compute_type))                                                                                     \
  X(Status, convolution_set_groups, cudnnSetConvolutionGroupCount, (ConvolutionDesc, int groups))           \
  X(Status, convolution_set_math, cudnnSetConvolutionMathType, (ConvolutionDesc, int math))                 \
  X(Status, find_forward, cudnnGetConvolutionForwardAlgorithm_v7,                                           \
    (Handle, TensorDesc x, FilterDesc w, ConvolutionDesc, TensorDesc y, int wanted, int* found,             \
     AlgorithmResult* results))                                                                             \
  X(Status, find_input_grad, cudnnGetConvolutionBackwardDataAlgorithm_v7,                                   \
    (Handle, FilterDesc w, TensorDesc dy, ConvolutionDesc, TensorDesc dx, int wanted, int* found,           \
     AlgorithmResult* results))                                                                             \
  X(Status, find_weight_grad, cudnnGetConvolutionBackwardFilterAlgorithm_v7,                                \
    (Handle, TensorDesc x, TensorDesc dy, ConvolutionDesc, FilterDesc dw, int wanted, int* found,           \
     AlgorithmResult* results))                                                                             \
  X(Status, forward, cudnnConvolutionForward,                                                               \
    (Handle, const void* alpha, TensorDesc, const void* x, FilterDesc, const void* w, ConvolutionDesc,      \
     int algorithm, void* workspace, size_t workspace_bytes, const void* beta, TensorDesc, void* y))        \
  X(Status, input_grad, cudnnConvolutionBackwardData,                                                       \
    (Handle, const void* alpha, FilterDesc, const void* w, TensorDesc, const void* dy, ConvolutionDesc,     \
     int algorithm, void* workspace, size_t workspace_bytes, const void* beta, TensorDesc, void* dx))       \
  X(Status, weight_grad, cudnnConvolutionBackwardFilter,                                                    \
    (Handle, const void* alpha, TensorDesc, const void* x, TensorDesc, const void* dy, ConvolutionDesc,     \
     int algorithm, void* workspace, size_t workspace_bytes, const void* beta, FilterDesc, void* dw))       \
  X(Status, add_bias, cudnnAddTensor,                                                                       \
    (Handle, const void* alpha, TensorDesc, const void* bias, const void* beta, TensorDesc, void* y))
// clang-format on

struct Library {
#define TENON_CUDNN_MEMBER(result, member, name, parameters) result(*member) parameters;
  TENON_CUDNN_FUNCTIONS(TENON_CUDNN_MEMBER)
#undef TENON_CUDNN_MEMBER
};

// Numbers of cudnn_graph.h and cudnn_cnn.h.
namespace number {
inline constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 9;  // cudnnDataType_t
inline constexpr int kNchw = 0;                                          // cudnnTensorFormat_t
inline constexpr int kCrossCorrelation = 1;                              // cudnnConvolutionMode_t
inline constexpr int kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3;  // cudnnMathType_t
inline constexpr int kDeterministic = 1;                                 // cudnnDeterminism_t
}  // namespace number

// NULL: it is absent.
const Library* library();

}  // namespace gpu::dnn
