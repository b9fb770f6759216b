// SPDX-License-Identifier: Apache-2.0
// Compiles where the plugin's declarations of oneDNN's functions and constants agree with a dnnl.h.
// The header names its own types for descriptors and enumerations, so parameters are compared by kind
// and size.
#include <dnnl.h>

#include <type_traits>

#include "../../plugins/onednn/symbols.hpp"

namespace {

using namespace tenon::onednn;

template <class T>
constexpr int kKind = std::is_pointer_v<T>          ? 1
                      : std::is_floating_point_v<T> ? 2
                                                    : 3;
template <class A, class B>
constexpr bool kAlike = kKind<A> == kKind<B> && sizeof(A) == sizeof(B);

template <class Ours, class Theirs>
struct Agree : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct Agree<R (*)(A...), S (*)(B...)>
    : std::bool_constant<kAlike<R, S> && (kAlike<A, B> && ...)> {
};

#define CHECK(result, name, parameters)                                     \
  static_assert(Agree<result(*) parameters, decltype(&dnnl_##name)>::value, \
                "dnnl_" #name " has other parameters");
TENON_ONEDNN_COMMON(CHECK)
#if DNNL_VERSION_MAJOR == 2
TENON_ONEDNN_2(CHECK)
#else
TENON_ONEDNN_3(CHECK)
#endif

static_assert(sizeof(ExecArgument) == sizeof(dnnl_exec_arg_t));
static_assert(offsetof(ExecArgument, memory) == offsetof(dnnl_exec_arg_t, memory));
static_assert(offsetof(Version, minor) == offsetof(dnnl_version_t, minor));

#define EQUAL(ours, theirs) \
  static_assert(static_cast<long>(ours) == static_cast<long>(theirs), #theirs);
EQUAL(kF16, dnnl_f16)
EQUAL(kBF16, dnnl_bf16)
EQUAL(kF32, dnnl_f32)
EQUAL(kS32, dnnl_s32)
EQUAL(kS8, dnnl_s8)
EQUAL(kU8, dnnl_u8)
EQUAL(kForwardTraining, dnnl_forward_training)
EQUAL(kForwardInference, dnnl_forward_inference)
EQUAL(kConvolutionDirect, dnnl_convolution_direct)
EQUAL(kAverageWithPadding, dnnl_pooling_avg_include_padding)
EQUAL(kAverageWithoutPadding, dnnl_pooling_avg_exclude_padding)
EQUAL(kSoftmax, dnnl_softmax_accurate)
EQUAL(kLogSoftmax, dnnl_softmax_log)
EQUAL(kSource, DNNL_ARG_SRC)
EQUAL(kDestination, DNNL_ARG_DST)
EQUAL(kWeights, DNNL_ARG_WEIGHTS)
EQUAL(kBias, DNNL_ARG_BIAS)
EQUAL(kMean, DNNL_ARG_MEAN)
EQUAL(kVariance, DNNL_ARG_VARIANCE)
EQUAL(kScale, DNNL_ARG_SCALE)
EQUAL(kShift, DNNL_ARG_SHIFT)
EQUAL(kScratchpad, DNNL_ARG_SCRATCHPAD)
EQUAL(kSourceGradient, DNNL_ARG_DIFF_SRC)
EQUAL(kDestinationGradient, DNNL_ARG_DIFF_DST)
EQUAL(kWeightsGradient, DNNL_ARG_DIFF_WEIGHTS)
EQUAL(kQuerySource, dnnl_query_src_md)
EQUAL(kQuerySourceGradient, dnnl_query_diff_src_md)
EQUAL(kQueryWeights, dnnl_query_weights_md)
EQUAL(kQueryWeightsGradient, dnnl_query_diff_weights_md)
EQUAL(kQueryDestination, dnnl_query_dst_md)
EQUAL(kQueryDestinationGradient, dnnl_query_diff_dst_md)
EQUAL(kQueryScratchpad, dnnl_query_scratchpad_md)
EQUAL(kEngineOfProcessor, dnnl_cpu)
EQUAL(kStreamInOrder, dnnl_stream_in_order)
EQUAL(kScratchpadOfUser, dnnl_scratchpad_mode_user)
EQUAL(kAnyLayout, dnnl_format_tag_any)
EQUAL(kMaxAxes, DNNL_MAX_NDIMS)
#if DNNL_VERSION_MAJOR == 2
EQUAL(8, dnnl_use_scale)  // plugins/onednn/api2.cpp
EQUAL(16, dnnl_use_shift)
static_assert(sizeof(dnnl_memory_desc_t) <= 4096);
static_assert(sizeof(dnnl_rnn_desc_t) <= 64 << 10);  // the largest of the operation descriptors
#else
EQUAL(2, dnnl_use_scale)  // plugins/onednn/api3.cpp
EQUAL(4, dnnl_use_shift)
#endif

}  // namespace
