// SPDX-License-Identifier: Apache-2.0
// The vendor's libraries of factorizations, cuSOLVER or hipSOLVER, and of triangular systems and batches, cuBLAS or
// hipBLAS, opened at run time. hipSOLVER has functions with the parameters of cuSOLVER's under the prefix hipsolverDn.
//
// Sources of the signatures: cusolverDn.h and cublas_api.h of CUDA 13.0, and the API references of hipSOLVER (2.4) and
// hipBLAS (2.4). tests/gpu/declarations compares them with the headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/driver.hpp"
#include "runtime/vendor.hpp"

namespace gpu::solver {

using Status =
    int;  // cusolverStatus_t, cublasStatus_t, hipsolverStatus_t, hipblasStatus_t: 0 is success
using Handle = void*;

// X(member, name without the vendor's prefix, parameters)
// clang-format off
#define TENON_GPU_SOLVER_FUNCTIONS(X)             \
  X(create, Create, (Handle* out))                \
  X(destroy, Destroy, (Handle))                   \
  X(set_stream, SetStream, (Handle, Stream))      \
  X(create_syevj, CreateSyevjInfo, (Handle* out)) \
  X(destroy_syevj, DestroySyevjInfo, (Handle))    \
  X(create_gesvdj, CreateGesvdjInfo, (Handle* out)) \
  X(destroy_gesvdj, DestroyGesvdjInfo, (Handle))

// Functions of newer versions, which may be absent together.
#define TENON_GPU_GEEV_FUNCTIONS(X)                                                                         \
  X(create_options, CreateParams, (Handle* out))                                                            \
  X(destroy_options, DestroyParams, (Handle))                                                               \
  X(geev_size, Xgeev_bufferSize,                                                                            \
    (Handle, Handle options, int job_left, int job_right, int64_t n, int type, const void* a, int64_t lda,  \
     int w_type, const void* w, int left_type, const void* left, int64_t ld_left, int right_type,           \
     const void* right, int64_t ld_right, int compute_type, size_t* device_bytes, size_t* host_bytes))      \
  X(geev, Xgeev,                                                                                            \
    (Handle, Handle options, int job_left, int job_right, int64_t n, int type, void* a, int64_t lda,        \
     int w_type, void* w, int left_type, void* left, int64_t ld_left, int right_type, void* right,          \
     int64_t ld_right, int compute_type, void* device_work, size_t device_bytes, void* host_work,           \
     size_t host_bytes, int* info))

// One for each element type. Matrices are in columns; addresses are the device's, but for the sizes of workspaces, which
// are written on the host.
// X(member, name for real elements, name for complex ones, parameters)
#define TENON_GPU_SOLVER_ROUTINES(X)                                                                        \
  X(potrf_size, potrf_bufferSize, potrf_bufferSize, (Handle, int uplo, int n, void* a, int lda, int* size)) \
  X(potrf, potrf, potrf,                                                                                    \
    (Handle, int uplo, int n, void* a, int lda, void* work, int size, int* info))                           \
  X(potrf_batched, potrfBatched, potrfBatched,                                                              \
    (Handle, int uplo, int n, void** a, int lda, int* infos, int batch))                                    \
  X(getrf_size, getrf_bufferSize, getrf_bufferSize, (Handle, int m, int n, void* a, int lda, int* size))    \
  X(getrf, getrf, getrf, (Handle, int m, int n, void* a, int lda, void* work, int* pivots, int* info))      \
  X(getrs, getrs, getrs,                                                                                    \
    (Handle, int trans, int n, int columns, const void* a, int lda, const int* pivots, void* b, int ldb,    \
     int* info))                                                                                            \
  X(geqrf_size, geqrf_bufferSize, geqrf_bufferSize, (Handle, int m, int n, void* a, int lda, int* size))    \
  X(geqrf, geqrf, geqrf,                                                                                    \
    (Handle, int m, int n, void* a, int lda, void* tau, void* work, int size, int* info))                   \
  X(orgqr_size, orgqr_bufferSize, ungqr_bufferSize,                                                         \
    (Handle, int m, int n, int k, const void* a, int lda, const void* tau, int* size))                      \
  X(orgqr, orgqr, ungqr,                                                                                    \
    (Handle, int m, int n, int k, void* a, int lda, const void* tau, void* work, int size, int* info))      \
  X(syevd_size, syevd_bufferSize, heevd_bufferSize,                                                         \
    (Handle, int job, int uplo, int n, const void* a, int lda, const void* w, int* size))                   \
  X(syevd, syevd, heevd,                                                                                    \
    (Handle, int job, int uplo, int n, void* a, int lda, void* w, void* work, int size, int* info))         \
  X(syevj_batched_size, syevjBatched_bufferSize, heevjBatched_bufferSize,                                   \
    (Handle, int job, int uplo, int n, const void* a, int lda, const void* w, int* size, Handle options,    \
     int batch))                                                                                            \
  X(syevj_batched, syevjBatched, heevjBatched,                                                              \
    (Handle, int job, int uplo, int n, void* a, int lda, void* w, void* work, int size, int* infos,         \
     Handle options, int batch))                                                                            \
  X(gesvdj_batched_size, gesvdjBatched_bufferSize, gesvdjBatched_bufferSize,                                \
    (Handle, int job, int m, int n, const void* a, int lda, const void* s, const void* u, int ldu,          \
     const void* v, int ldv, int* size, Handle options, int batch))                                         \
  X(gesvdj_batched, gesvdjBatched, gesvdjBatched,                                                           \
    (Handle, int job, int m, int n, void* a, int lda, void* s, void* u, int ldu, void* v, int ldv,          \
     void* work, int size, int* infos, Handle options, int batch))                                          \
  X(gesvd_size, gesvd_bufferSize, gesvd_bufferSize, (Handle, int m, int n, int* size))                      \
  X(gesvd, gesvd, gesvd,                                                                                    \
    (Handle, signed char job_u, signed char job_vt, int m, int n, void* a, int lda, void* s, void* u,       \
     int ldu, void* vt, int ldvt, void* work, int size, void* real_work, int* info))                        \
  X(sytrf_size, sytrf_bufferSize, sytrf_bufferSize, (Handle, int n, void* a, int lda, int* size))           \
  X(sytrf, sytrf, sytrf,                                                                                    \
    (Handle, int uplo, int n, void* a, int lda, int* pivots, void* work, int size, int* info))

// X(member, cuBLAS' name, hipBLAS' name, parameters)
#define TENON_GPU_DENSE_BLAS_FUNCTIONS(X)                                        \
  X(blas_create, cublasCreate_v2, hipblasCreate, (Handle* out))                  \
  X(blas_destroy, cublasDestroy_v2, hipblasDestroy, (Handle))                    \
  X(blas_set_stream, cublasSetStream_v2, hipblasSetStream, (Handle, Stream))

// X(member, cuBLAS' name behind the letter of the type, hipBLAS', parameters)
#define TENON_GPU_DENSE_BLAS_ROUTINES(X)                                                                    \
  X(trsm, trsm_v2, trsm,                                                                                    \
    (Handle, int side, int uplo, int trans, int diagonal, int m, int n, const void* alpha, const void* a,   \
     int lda, void* b, int ldb))                                                                            \
  X(trsm_batched, trsmBatched, trsmBatched,                                                                 \
    (Handle, int side, int uplo, int trans, int diagonal, int m, int n, const void* alpha,                  \
     const void* const* a, int lda, void* const* b, int ldb, int batch))                                    \
  X(gemm_batched, gemmStridedBatched, gemmStridedBatched,                                                   \
    (Handle, int trans_a, int trans_b, int m, int n, int k, const void* alpha, const void* a, int lda,      \
     long long a_pitch, const void* b, int ldb, long long b_pitch, const void* beta, void* c, int ldc,      \
     long long c_pitch, int batch))                                                                         \
  X(geqrf_batched, geqrfBatched, geqrfBatched,                                                              \
    (Handle, int m, int n, void* const* a, int lda, void* const* tau, int* info, int batch)) /* on the host */ \
  X(getrf_batched, getrfBatched, getrfBatched,                                                              \
    (Handle, int n, void* const* a, int lda, int* pivots, int* infos, int batch))                           \
  X(getrs_batched, getrsBatched, getrsBatched,                                                              \
    (Handle, int trans, int n, int columns, void* const* a, int lda, const int* pivots, void* const* b,     \
     int ldb, int* info, int batch)) /* `info` is on the host */
// clang-format on

struct Routines {
#define TENON_GPU_MEMBER(member, first, second, parameters) Status(*member) parameters;
  TENON_GPU_SOLVER_ROUTINES(TENON_GPU_MEMBER)
  TENON_GPU_DENSE_BLAS_ROUTINES(TENON_GPU_MEMBER)
#undef TENON_GPU_MEMBER
};

struct Library {
#define TENON_GPU_MEMBER(member, name, parameters) Status(*member) parameters;
  TENON_GPU_SOLVER_FUNCTIONS(TENON_GPU_MEMBER)
  TENON_GPU_GEEV_FUNCTIONS(TENON_GPU_MEMBER)
#undef TENON_GPU_MEMBER
#define TENON_GPU_MEMBER(member, cuda, hip, parameters) Status(*member) parameters;
  TENON_GPU_DENSE_BLAS_FUNCTIONS(TENON_GPU_MEMBER)
#undef TENON_GPU_MEMBER
  Routines float32, float64, complex64, complex128;

  bool has_geev() const { return create_options && destroy_options && geev_size && geev; }
  const Routines& routines(int dtype) const {
    switch (dtype) {
      case TENON_DTYPE_F32:
        return float32;
      case TENON_DTYPE_F64:
        return float64;
      case TENON_DTYPE_C64:
        return complex64;
      default:
        return complex128;
    }
  }
};

// Opens both libraries at the first call. NULL: one is absent, which the log says, and library_problem what to install.
const Library* library();
const char* library_name();  // NULL: absent
const char* library_problem();

}  // namespace gpu::solver
