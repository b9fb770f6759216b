// SPDX-License-Identifier: Apache-2.0
// The functions and numbers that plugins/cuda declares, beside CUDA's headers. Compiled, not run.
#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>

#include "blas/blas.hpp"
#include "runtime/compiler_functions.hpp"
#include "same_call.hpp"

using namespace gpu;

#define CHECK_DRIVER(member, cuda, hip, parameters) CHECK_CALL(Error, member, parameters, cuda)
TENON_GPU_FUNCTIONS(CHECK_DRIVER)

#define CHECK_COMPILER(result, member, cuda, hip, parameters) \
  CHECK_CALL(result, member, parameters, cuda)
TENON_GPU_COMPILER_FUNCTIONS(CHECK_COMPILER)

namespace gpu::blas {
#define CHECK_BLAS(member, name, parameters) CHECK_CALL(Status, member, parameters, cublasLt##name)
TENON_GPU_BLAS_FUNCTIONS(CHECK_BLAS)
}  // namespace gpu::blas

static_assert(sizeof(blas::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(blas::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(blas::HeuristicResult, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(blas::HeuristicResult, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

namespace number = vendor::blas_number;
static_assert(number::kNotTransposed == CUBLAS_OP_N && number::kTransposed == CUBLAS_OP_T);
static_assert(number::kCompute32 == CUBLAS_COMPUTE_32F && number::kCompute64 == CUBLAS_COMPUTE_64F);
static_assert(number::kDescTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(number::kDescTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(number::kDescEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(number::kDescBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(number::kLayoutBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(number::kLayoutBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(number::kPreferenceWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(number::kPreferenceAlignment == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              number::kPreferenceAlignment + 3 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(blas::kEpilogueBias == CUBLASLT_EPILOGUE_BIAS);

static_assert(error::kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(error::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(error::kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(error::kInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(error::kNoBinary == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(error::kPeerUnsupported == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
static_assert(error::kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(error::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(error::kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(error::kOutOfResources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
static_assert(error::kPeerAlreadyEnabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(error::kPeerNotEnabled == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
static_assert(error::kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(error::kNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(error::kFirstCaptureError == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(error::kLastCaptureError == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kHostPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kManagedGlobal == CU_MEM_ATTACH_GLOBAL);
static_assert(kIpcLazyPeerAccess == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(kPoolReleaseThreshold == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
static_assert(kPoolReserved == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
static_assert(kPoolUsed == CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
static_assert(kFunctionMaxThreads == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
namespace attribute = vendor::attribute_number;
static_assert(attribute::kMaxThreads == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(attribute::kSharedBytes == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
static_assert(attribute::kWarpSize == CU_DEVICE_ATTRIBUTE_WARP_SIZE);
static_assert(attribute::kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
