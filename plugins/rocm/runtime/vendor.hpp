// SPDX-License-Identifier: Apache-2.0
// What HIP has in another form than CUDA: names, the current device, texts of errors, the
// architecture. The sources in plugins/gpu_common are compiled against this header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/driver.hpp"

// The name of a function in HIP's library.
#define TENON_GPU_NAME(cuda, hip) #hip

namespace gpu::vendor {

inline constexpr const char* kKind = "hip";
inline constexpr const char* kDriverVariable = "TENON_ROCM_DRIVER";
inline constexpr const char* kDriverNames =
    "libamdhip64.so.7 libamdhip64.so.6 libamdhip64.so /opt/rocm/lib/libamdhip64.so";
inline constexpr const char* kInstallDriver =
    "install ROCm's HIP runtime, or name the file in TENON_ROCM_DRIVER";
inline constexpr const char* kOldestDriver = "the HIP runtime of ROCm 6.0";
inline constexpr const char* kCompilerVariable = "TENON_ROCM_COMPILER";
inline constexpr const char* kCompilerNames =
    "libhiprtc.so.7 libhiprtc.so.6 libhiprtc.so /opt/rocm/lib/libhiprtc.so";
inline constexpr const char* kInstallCompiler =
    "install ROCm's HIPRTC, or name the file in TENON_ROCM_COMPILER";
inline constexpr const char* kOldestCompiler = "HIPRTC of ROCm 6.0";
inline constexpr const char* kProgramsVariable = "TENON_ROCM_PROGRAMS";
inline constexpr const char* kProgramsFile = "tenon_rocm/rocm.programs";  // in site-packages
inline constexpr const char* kCollectiveVariable = "TENON_ROCM_COLLECTIVE";
inline constexpr const char* kCollectiveNames =
    "librccl.so.1 librccl.so /opt/rocm/lib/librccl.so.1";
inline constexpr const char* kInstallCollective =
    "install ROCm's RCCL, or name the file in TENON_ROCM_COLLECTIVE";
inline constexpr const char* kOldestCollective = "RCCL of ROCm 6.0";
inline constexpr const char* kBlasVariable = "TENON_ROCM_BLAS";
inline constexpr const char* kBlasNames =
    "libhipblaslt.so.1 libhipblaslt.so.0 libhipblaslt.so /opt/rocm/lib/libhipblaslt.so";
inline constexpr const char* kInstallBlas =
    "install ROCm's hipBLASLt, or name the file in TENON_ROCM_BLAS";
inline constexpr const char* kBlas = "hipBLASLt";
inline constexpr const char* kDnnVariable = "TENON_ROCM_DNN";
inline constexpr const char* kDnnNames = "libMIOpen.so.1 libMIOpen.so /opt/rocm/lib/libMIOpen.so";
inline constexpr const char* kInstallDnn =
    "install ROCm's MIOpen (AMD's package miopen-hip), or name the file in TENON_ROCM_DNN";
inline constexpr const char* kDnn = "MIOpen";
inline constexpr const char* kFftVariable = "TENON_ROCM_FFT";
inline constexpr const char* kFftNames = "libhipfft.so.0 libhipfft.so /opt/rocm/lib/libhipfft.so";
inline constexpr const char* kInstallFft =
    "install ROCm's hipFFT, or name the file in TENON_ROCM_FFT";
inline constexpr const char* kFft = "hipFFT";
inline constexpr const char* kSolverVariable = "TENON_ROCM_SOLVER";
inline constexpr const char* kSolverNames =
    "libhipsolver.so.1 libhipsolver.so.0 libhipsolver.so /opt/rocm/lib/libhipsolver.so";
inline constexpr const char* kInstallSolver =
    "install ROCm's hipSOLVER, or name the file in TENON_ROCM_SOLVER";
inline constexpr const char* kSolver = "hipSOLVER";
inline constexpr const char* kDenseBlasVariable = "TENON_ROCM_DENSE_BLAS";
inline constexpr const char* kDenseBlasNames =
    "libhipblas.so.3 libhipblas.so.2 libhipblas.so /opt/rocm/lib/libhipblas.so";
inline constexpr const char* kInstallDenseBlas =
    "install ROCm's hipBLAS, or name the file in TENON_ROCM_DENSE_BLAS";
inline constexpr const char* kDenseBlas = "hipBLAS";
inline constexpr const char* kTracerVariable = "TENON_ROCM_TRACER";
inline constexpr const char* kTracerNames =
    "libroctracer64.so.4 libroctracer64.so /opt/rocm/lib/libroctracer64.so.4";
inline constexpr const char* kInstallTracer =
    "install ROCm's roctracer, or name the file in TENON_ROCM_TRACER";
inline constexpr const char* kArchitectureOption = "--offload-arch=";
inline constexpr const char* kBlockingVariable = "HIP_LAUNCH_BLOCKING";
inline constexpr int32_t kDlDeviceType = 10;  // kDLROCM

// Finds the functions that CUDA lacks. Returns the name of the first one missing, or nullptr.
const char* find_own_symbols(void* library);

const char* error_name(Error error);
const char* error_text(Error error);

// HIP has a current device instead of contexts, so `out` receives nullptr.
Error open_context(int ordinal, void** out);
void close_context(int ordinal, void* context);

// Makes a device current on this thread and restores the one that was.
class CurrentScope {
 public:
  CurrentScope(int ordinal, void* context);
  ~CurrentScope();
  CurrentScope(const CurrentScope&) = delete;
  CurrentScope& operator=(const CurrentScope&) = delete;

 private:
  int before_ = -1;
  bool changed_ = false;
};

// hipDeviceAttribute_t, in the numbering since ROCm 5
namespace attribute_number {
inline constexpr int kMaxThreads = 56;
inline constexpr int kSharedBytes = 74;
inline constexpr int kWarpSize = 87;
inline constexpr int kMultiprocessors = 63;
}  // namespace attribute_number

// Numbers of hipBLASLt (hipblaslt.h and hipblas-common.h of ROCm 6).
namespace blas_number {
inline constexpr int kNotTransposed = 111;
inline constexpr int kTransposed = 112;
inline constexpr int kCompute32 = 2;
inline constexpr int kCompute64 = 7;
inline constexpr int kDescTransposeA = 0;
inline constexpr int kDescTransposeB = 1;
inline constexpr int kDescEpilogue = 2;
inline constexpr int kDescBiasPointer = 3;
inline constexpr int kLayoutBatchCount = 0;
inline constexpr int kLayoutBatchStride = 1;
inline constexpr int kPreferenceWorkspace = 1;
inline constexpr int kPreferenceAlignment = -1;  // its algorithms accept every alignment
inline constexpr uint64_t kAlgorithmWords = 3;
}  // namespace blas_number

using FftHandle = void*;  // hipfftHandle

// Numbers of hipBLAS and hipSOLVER (hipblas.h and hipsolver-types.h of ROCm 6).
namespace solver_number {
inline constexpr int kNotTransposed = 111;
inline constexpr int kLower = 122;
inline constexpr int kUpper = 121;
inline constexpr int kLeft = 141;
inline constexpr int kRight = 142;
inline constexpr int kNonUnit = 131;
inline constexpr int kUnit = 132;
inline constexpr int kValues = 201;
inline constexpr int kVectors = 202;
}  // namespace solver_number

// The size of each parameter of a kernel. Always false: HIP does not tell.
bool parameter_sizes(Function function, std::vector<size_t>* out);

std::string architecture(int ordinal);  // "gfx90a:sramecc+:xnack-"

// The kernels that stand on libraries of the vendor.
std::vector<tenon_kernel_def> library_kernels();

// hipMemcpyPeerAsync "copies memory between two peer accessible devices"; what it does between others is not written.
inline constexpr bool kPeerCopiesNeedAccess = true;

// Lets the device that is current reach the memory of another one.
Error enable_peer(int peer, void* peer_context);

// Queues a copy between two devices.
Error copy_peer(void* dst, int to, void* to_context, const void* src, int from, void* from_context,
                size_t bytes, Stream stream);

// The size of the allocation that `memory` begins.
Error allocation_bytes(void* memory, uint64_t* out);

}  // namespace gpu::vendor
