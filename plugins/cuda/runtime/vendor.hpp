// SPDX-License-Identifier: Apache-2.0
// What CUDA has in another form than HIP: names, contexts, texts of errors, the architecture. The
// sources in plugins/gpu_common are compiled against this header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/driver.hpp"

// The name of a function in CUDA's library.
#define TENON_GPU_NAME(cuda, hip) #cuda

namespace gpu::vendor {

inline constexpr const char* kKind = "cuda";
inline constexpr const char* kDriverVariable = "TENON_CUDA_DRIVER";
inline constexpr const char* kDriverNames = "libcuda.so.1 libcuda.so";
inline constexpr const char* kInstallDriver =
    "install NVIDIA's driver, or name the file in TENON_CUDA_DRIVER";
inline constexpr const char* kOldestDriver = "the driver of CUDA 12.0";
inline constexpr const char* kCompilerVariable = "TENON_CUDA_COMPILER";
inline constexpr const char* kCompilerNames =
    "libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so /usr/local/cuda/lib64/libnvrtc.so";
inline constexpr const char* kInstallCompiler =
    "install NVRTC (pip install nvidia-cuda-nvrtc, or the CUDA toolkit), or name the file in "
    "TENON_CUDA_COMPILER";
inline constexpr const char* kOldestCompiler = "NVRTC 12.0";
inline constexpr const char* kProgramsVariable = "TENON_CUDA_PROGRAMS";
inline constexpr const char* kProgramsFile = "tenon_cuda/cuda.programs";  // in site-packages
inline constexpr const char* kCollectiveVariable = "TENON_CUDA_COLLECTIVE";
inline constexpr const char* kCollectiveNames = "libnccl.so.2 libnccl.so";
inline constexpr const char* kInstallCollective =
    "install NCCL (pip install nvidia-nccl-cu12, or NVIDIA's package libnccl2), or name the file "
    "in "
    "TENON_CUDA_COLLECTIVE";
inline constexpr const char* kOldestCollective = "NCCL 2.10";
inline constexpr const char* kBlasVariable = "TENON_CUDA_BLAS";
inline constexpr const char* kBlasNames =
    "libcublasLt.so.13 libcublasLt.so.12 /usr/local/cuda/lib64/libcublasLt.so";
inline constexpr const char* kInstallBlas =
    "install cuBLAS (pip install nvidia-cublas, or the CUDA toolkit), or name the file in "
    "TENON_CUDA_BLAS";
inline constexpr const char* kBlas = "cuBLASLt";
inline constexpr const char* kDnnVariable = "TENON_CUDA_DNN";
inline constexpr const char* kDnnNames = "libcudnn.so.9";
inline constexpr const char* kInstallDnn =
    "install cuDNN 9 (pip install nvidia-cudnn-cu13, or NVIDIA's package cudnn9), or name the file "
    "in TENON_CUDA_DNN";
inline constexpr const char* kDnn = "cuDNN";
inline constexpr const char* kFftVariable = "TENON_CUDA_FFT";
inline constexpr const char* kFftNames =
    "libcufft.so.12 libcufft.so.11 /usr/local/cuda/lib64/libcufft.so";
inline constexpr const char* kInstallFft =
    "install cuFFT (pip install nvidia-cufft, or the CUDA toolkit), or name the file in "
    "TENON_CUDA_FFT";
inline constexpr const char* kFft = "cuFFT";
inline constexpr const char* kSolverVariable = "TENON_CUDA_SOLVER";
inline constexpr const char* kSolverNames =
    "libcusolver.so.12 libcusolver.so.11 /usr/local/cuda/lib64/libcusolver.so";
inline constexpr const char* kInstallSolver =
    "install cuSOLVER (pip install nvidia-cusolver, or the CUDA toolkit), or name the file in "
    "TENON_CUDA_SOLVER";
inline constexpr const char* kSolver = "cuSOLVER";
inline constexpr const char* kDenseBlasVariable = "TENON_CUDA_DENSE_BLAS";
inline constexpr const char* kDenseBlasNames =
    "libcublas.so.13 libcublas.so.12 /usr/local/cuda/lib64/libcublas.so";
inline constexpr const char* kInstallDenseBlas =
    "install cuBLAS (pip install nvidia-cublas, or the CUDA toolkit), or name the file in "
    "TENON_CUDA_DENSE_BLAS";
inline constexpr const char* kDenseBlas = "cuBLAS";
inline constexpr const char* kTracerVariable = "TENON_CUDA_TRACER";
inline constexpr const char* kTracerNames =
    "libcupti.so.13 libcupti.so.12 /usr/local/cuda/extras/CUPTI/lib64/libcupti.so "
    "/usr/local/cuda/lib64/libcupti.so";
inline constexpr const char* kInstallTracer =
    "install CUPTI (pip install nvidia-cuda-cupti, or the CUDA toolkit), or name the file in "
    "TENON_CUDA_TRACER";
inline constexpr const char* kArchitectureOption = "--gpu-architecture=";
inline constexpr const char* kBlockingVariable = "CUDA_LAUNCH_BLOCKING";
inline constexpr int32_t kDlDeviceType = 2;  // kDLCUDA

// Finds the functions that HIP lacks. Returns the name of the first one missing, or nullptr.
const char* find_own_symbols(void* library);

const char* error_name(Error error);
const char* error_text(Error error);

// The primary context of the device, which all libraries of the process share.
Error open_context(int ordinal, void** out);
void close_context(int ordinal, void* context);

// Makes a context current on this thread and restores the one that was.
class CurrentScope {
 public:
  CurrentScope(int ordinal, void* context);
  ~CurrentScope();
  CurrentScope(const CurrentScope&) = delete;
  CurrentScope& operator=(const CurrentScope&) = delete;

 private:
  void* before_ = nullptr;
  bool changed_ = false;
};

// CUdevice_attribute
namespace attribute_number {
inline constexpr int kMaxThreads = 1;
inline constexpr int kSharedBytes = 8;
inline constexpr int kWarpSize = 10;
inline constexpr int kMultiprocessors = 16;
}  // namespace attribute_number

// Numbers of cuBLASLt (cublasLt.h and cublas_api.h of CUDA 12 and 13).
namespace blas_number {
inline constexpr int kNotTransposed = 0;
inline constexpr int kTransposed = 1;
inline constexpr int kCompute32 = 68;
inline constexpr int kCompute64 = 70;
inline constexpr int kDescTransposeA = 3;
inline constexpr int kDescTransposeB = 4;
inline constexpr int kDescEpilogue = 7;
inline constexpr int kDescBiasPointer = 8;
inline constexpr int kLayoutBatchCount = 5;
inline constexpr int kLayoutBatchStride = 6;
inline constexpr int kPreferenceWorkspace = 1;
// The first of four: of A, B, C and D.
inline constexpr int kPreferenceAlignment = 5;
inline constexpr uint64_t kAlgorithmWords = 8;
}  // namespace blas_number

using FftHandle = int;  // cufftHandle

// Numbers of cuBLAS and cuSOLVER (cublas_api.h and cusolver_common.h of CUDA 12 and 13).
namespace solver_number {
inline constexpr int kNotTransposed = 0;
inline constexpr int kLower = 0;
inline constexpr int kUpper = 1;
inline constexpr int kLeft = 0;
inline constexpr int kRight = 1;
inline constexpr int kNonUnit = 0;
inline constexpr int kUnit = 1;
inline constexpr int kValues = 0;
inline constexpr int kVectors = 1;
}  // namespace solver_number

// The size of each parameter of a kernel. Returns false if the driver does not tell.
bool parameter_sizes(Function function, std::vector<size_t>* out);

std::string architecture(int ordinal);  // "sm_90"

// The kernels that stand on libraries of the vendor.
std::vector<tenon_kernel_def> library_kernels();

// The driver goes through memory of its own where devices do not reach each other.
inline constexpr bool kPeerCopiesNeedAccess = false;

// Lets the device that is current reach the memory of another one.
Error enable_peer(int peer, void* peer_context);

// Queues a copy between two devices.
Error copy_peer(void* dst, int to, void* to_context, const void* src, int from, void* from_context,
                size_t bytes, Stream stream);

// The size of the allocation that `memory` begins.
Error allocation_bytes(void* memory, uint64_t* out);

}  // namespace gpu::vendor
