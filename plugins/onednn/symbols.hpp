// SPDX-License-Identifier: Apache-2.0
// The C interface of oneDNN as far as the plugin uses it, declared from its documentation
// (oneapi-src.github.io/oneDNN): versions 2.x and 3.x differ in how descriptions are created.
#pragma once

#include <cstddef>
#include <cstdint>

struct dnnl_engine;
struct dnnl_stream;
struct dnnl_memory;
struct dnnl_primitive;
struct dnnl_primitive_desc;
struct dnnl_primitive_attr;

namespace tenon::onednn {

using Status = int;  // 0: success
// A memory descriptor. Version 2 has a structure and version 3 a handle; both are passed as a
// pointer.
using MemoryDesc = const void*;

struct Version {
  int major, minor, patch;
};
struct ExecArgument {
  int argument;  // kSource, ...
  dnnl_memory* memory;
};

// Enumerations that are equal in both versions.
enum DataType { kF16 = 1, kBF16 = 2, kF32 = 3, kS32 = 4, kS8 = 5, kU8 = 6 };
enum PropagationKind { kForwardTraining = 64, kForwardInference = 96 };
enum Algorithm {
  kConvolutionDirect = 1,
  kAverageWithPadding = 0x2ff,
  kAverageWithoutPadding = 0x3ff,
  kSoftmax = 0x30000,
  kLogSoftmax = 0x30001
};
enum ExecArgumentId {
  kSource = 1,
  kDestination = 17,
  kWeights = 33,
  kBias = 41,
  kMean = 49,
  kVariance = 50,
  kScale = 51,
  kShift = 52,
  kScratchpad = 80,
  kSourceGradient = 129,
  kDestinationGradient = 145,
  kWeightsGradient = 161
};
enum Query {
  kNoQuery = 0,
  kQuerySource = 129,
  kQuerySourceGradient = 130,
  kQueryWeights = 131,
  kQueryWeightsGradient = 132,
  kQueryDestination = 133,
  kQueryDestinationGradient = 134,
  kQueryScratchpad = 136
};
inline constexpr int kEngineOfProcessor = 1;
inline constexpr unsigned kStreamInOrder = 1;
inline constexpr int kScratchpadOfUser = 1;
inline constexpr int kAnyLayout = 1;  // format tag
inline constexpr int kMaxAxes = 12;

// X(result, name without dnnl_, (parameters)), for both versions.
#define TENON_ONEDNN_COMMON(X)                                                              \
  X(const Version*, version, ())                                                            \
  X(Status, engine_create, (dnnl_engine**, int kind, size_t index))                         \
  X(Status, stream_create, (dnnl_stream**, dnnl_engine*, unsigned flags))                   \
  X(Status, stream_wait, (dnnl_stream*))                                                    \
  X(Status, stream_destroy, (dnnl_stream*))                                                 \
  X(Status, memory_create, (dnnl_memory**, MemoryDesc, dnnl_engine*, void* data))           \
  X(Status, memory_set_data_handle, (dnnl_memory*, void* data))                             \
  X(Status, memory_destroy, (dnnl_memory*))                                                 \
  X(int, memory_desc_equal, (MemoryDesc, MemoryDesc))                                       \
  X(size_t, memory_desc_get_size, (MemoryDesc))                                             \
  X(Status, primitive_attr_create, (dnnl_primitive_attr**))                                 \
  X(Status, primitive_attr_set_scratchpad_mode, (dnnl_primitive_attr*, int mode))           \
  X(MemoryDesc, primitive_desc_query_md, (const dnnl_primitive_desc*, int what, int index)) \
  X(Status, primitive_desc_destroy, (dnnl_primitive_desc*))                                 \
  X(Status, primitive_create, (dnnl_primitive**, const dnnl_primitive_desc*))               \
  X(Status, primitive_destroy, (dnnl_primitive*))                                           \
  X(Status, primitive_execute,                                                              \
    (const dnnl_primitive*, dnnl_stream*, int count, const ExecArgument*))                  \
  X(Status, reorder_primitive_desc_create,                                                  \
    (dnnl_primitive_desc**, MemoryDesc from, dnnl_engine*, MemoryDesc to, dnnl_engine*,     \
     const dnnl_primitive_attr*))

// Version 2: a function fills in a structure, from which the primitive's description is made. The
// plugin reserves more room than any of them takes and does not read them.
#define TENON_ONEDNN_2(X)                                                                        \
  X(Status, memory_desc_init_by_strides,                                                         \
    (void* md, int ndims, const int64_t* dims, int type, const int64_t* strides))                \
  X(Status, memory_desc_init_by_tag,                                                             \
    (void* md, int ndims, const int64_t* dims, int type, int tag))                               \
  X(Status, primitive_desc_create,                                                               \
    (dnnl_primitive_desc**, const void* op_desc, const dnnl_primitive_attr*, dnnl_engine*,       \
     const dnnl_primitive_desc* hint))                                                           \
  X(Status, matmul_desc_init,                                                                    \
    (void*, MemoryDesc src, MemoryDesc weights, MemoryDesc bias, MemoryDesc dst))                \
  X(Status, dilated_convolution_forward_desc_init,                                               \
    (void*, int kind, int algorithm, MemoryDesc src, MemoryDesc weights, MemoryDesc bias,        \
     MemoryDesc dst, const int64_t* strides, const int64_t* dilates, const int64_t* left,        \
     const int64_t* right))                                                                      \
  X(Status, dilated_convolution_backward_data_desc_init,                                         \
    (void*, int algorithm, MemoryDesc diff_src, MemoryDesc weights, MemoryDesc diff_dst,         \
     const int64_t* strides, const int64_t* dilates, const int64_t* left, const int64_t* right)) \
  X(Status, dilated_convolution_backward_weights_desc_init,                                      \
    (void*, int algorithm, MemoryDesc src, MemoryDesc diff_weights, MemoryDesc diff_bias,        \
     MemoryDesc diff_dst, const int64_t* strides, const int64_t* dilates, const int64_t* left,   \
     const int64_t* right))                                                                      \
  X(Status, pooling_v2_forward_desc_init,                                                        \
    (void*, int kind, int algorithm, MemoryDesc src, MemoryDesc dst, const int64_t* strides,     \
     const int64_t* kernel, const int64_t* dilates, const int64_t* left, const int64_t* right))  \
  X(Status, pooling_v2_backward_desc_init,                                                       \
    (void*, int algorithm, MemoryDesc diff_src, MemoryDesc diff_dst, const int64_t* strides,     \
     const int64_t* kernel, const int64_t* dilates, const int64_t* left, const int64_t* right))  \
  X(Status, softmax_v2_forward_desc_init,                                                        \
    (void*, int kind, int algorithm, MemoryDesc src, MemoryDesc dst, int axis))                  \
  X(Status, layer_normalization_forward_desc_init,                                               \
    (void*, int kind, MemoryDesc data, MemoryDesc statistics, float eps, unsigned flags))        \
  X(Status, batch_normalization_forward_desc_init,                                               \
    (void*, int kind, MemoryDesc data, float eps, unsigned flags))

// Version 3: one call makes a primitive's description.
#define TENON_ONEDNN_3(X)                                                                          \
  X(Status, memory_desc_create_with_strides,                                                       \
    (void** md, int ndims, const int64_t* dims, int type, const int64_t* strides))                 \
  X(Status, memory_desc_create_with_tag,                                                           \
    (void** md, int ndims, const int64_t* dims, int type, int tag))                                \
  X(Status, memory_desc_destroy, (void* md))                                                       \
  X(Status, matmul_primitive_desc_create,                                                          \
    (dnnl_primitive_desc**, dnnl_engine*, MemoryDesc src, MemoryDesc weights, MemoryDesc bias,     \
     MemoryDesc dst, const dnnl_primitive_attr*))                                                  \
  X(Status, convolution_forward_primitive_desc_create,                                             \
    (dnnl_primitive_desc**, dnnl_engine*, int kind, int algorithm, MemoryDesc src,                 \
     MemoryDesc weights, MemoryDesc bias, MemoryDesc dst, const int64_t* strides,                  \
     const int64_t* dilates, const int64_t* left, const int64_t* right,                            \
     const dnnl_primitive_attr*))                                                                  \
  X(Status, convolution_backward_data_primitive_desc_create,                                       \
    (dnnl_primitive_desc**, dnnl_engine*, int algorithm, MemoryDesc diff_src, MemoryDesc weights,  \
     MemoryDesc diff_dst, const int64_t* strides, const int64_t* dilates, const int64_t* left,     \
     const int64_t* right, const dnnl_primitive_desc* hint, const dnnl_primitive_attr*))           \
  X(Status, convolution_backward_weights_primitive_desc_create,                                    \
    (dnnl_primitive_desc**, dnnl_engine*, int algorithm, MemoryDesc src, MemoryDesc diff_weights,  \
     MemoryDesc diff_bias, MemoryDesc diff_dst, const int64_t* strides, const int64_t* dilates,    \
     const int64_t* left, const int64_t* right, const dnnl_primitive_desc* hint,                   \
     const dnnl_primitive_attr*))                                                                  \
  X(Status, pooling_forward_primitive_desc_create,                                                 \
    (dnnl_primitive_desc**, dnnl_engine*, int kind, int algorithm, MemoryDesc src, MemoryDesc dst, \
     const int64_t* strides, const int64_t* kernel, const int64_t* dilates, const int64_t* left,   \
     const int64_t* right, const dnnl_primitive_attr*))                                            \
  X(Status, pooling_backward_primitive_desc_create,                                                \
    (dnnl_primitive_desc**, dnnl_engine*, int algorithm, MemoryDesc diff_src, MemoryDesc diff_dst, \
     const int64_t* strides, const int64_t* kernel, const int64_t* dilates, const int64_t* left,   \
     const int64_t* right, const dnnl_primitive_desc* hint, const dnnl_primitive_attr*))           \
  X(Status, softmax_forward_primitive_desc_create,                                                 \
    (dnnl_primitive_desc**, dnnl_engine*, int kind, int algorithm, MemoryDesc src, MemoryDesc dst, \
     int axis, const dnnl_primitive_attr*))                                                        \
  X(Status, layer_normalization_forward_primitive_desc_create,                                     \
    (dnnl_primitive_desc**, dnnl_engine*, int kind, MemoryDesc src, MemoryDesc dst,                \
     MemoryDesc statistics, float eps, unsigned flags, const dnnl_primitive_attr*))                \
  X(Status, batch_normalization_forward_primitive_desc_create,                                     \
    (dnnl_primitive_desc**, dnnl_engine*, int kind, MemoryDesc src, MemoryDesc dst, float eps,     \
     unsigned flags, const dnnl_primitive_attr*))

#define TENON_ONEDNN_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
struct CommonSymbols {
  TENON_ONEDNN_COMMON(TENON_ONEDNN_MEMBER)
};
struct Symbols2 {
  TENON_ONEDNN_2(TENON_ONEDNN_MEMBER)
};
struct Symbols3 {
  TENON_ONEDNN_3(TENON_ONEDNN_MEMBER)
};
#undef TENON_ONEDNN_MEMBER

}  // namespace tenon::onednn
