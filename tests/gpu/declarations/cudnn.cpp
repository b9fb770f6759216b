// SPDX-License-Identifier: Apache-2.0
// The functions and numbers that plugins/cuda declares of cuDNN, beside its headers. Compiled, not run.
#include <cudnn.h>

#include "dnn/cudnn.hpp"
#include "same_call.hpp"

namespace gpu::dnn {
#define CHECK_CUDNN(result, member, name, parameters) CHECK_CALL(result, member, parameters, name)
TENON_CUDNN_FUNCTIONS(CHECK_CUDNN)

template <class Theirs>
constexpr bool is_result = sizeof(AlgorithmResult) == sizeof(Theirs) &&
                           offsetof(AlgorithmResult, status) == offsetof(Theirs, status) &&
                           offsetof(AlgorithmResult, workspace_bytes) == offsetof(Theirs, memory) &&
                           offsetof(AlgorithmResult, is_deterministic) ==
                               offsetof(Theirs, determinism) &&
                           offsetof(AlgorithmResult, math) == offsetof(Theirs, mathType);
static_assert(is_result<cudnnConvolutionFwdAlgoPerf_t>);
static_assert(is_result<cudnnConvolutionBwdDataAlgoPerf_t>);
static_assert(is_result<cudnnConvolutionBwdFilterAlgoPerf_t>);

static_assert(number::kFloat == CUDNN_DATA_FLOAT && number::kDouble == CUDNN_DATA_DOUBLE);
static_assert(number::kHalf == CUDNN_DATA_HALF && number::kBfloat16 == CUDNN_DATA_BFLOAT16);
static_assert(number::kNchw == CUDNN_TENSOR_NCHW);
static_assert(number::kCrossCorrelation == CUDNN_CROSS_CORRELATION);
static_assert(number::kDefaultMath == CUDNN_DEFAULT_MATH);
static_assert(number::kTensorOpMath == CUDNN_TENSOR_OP_MATH);
static_assert(number::kFmaMath == CUDNN_FMA_MATH);
static_assert(number::kDeterministic == CUDNN_DETERMINISTIC);
}  // namespace gpu::dnn
