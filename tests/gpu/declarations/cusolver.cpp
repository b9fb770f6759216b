// SPDX-License-Identifier: Apache-2.0
// The functions and numbers that plugins/cuda declares of cuSOLVER and cuBLAS, beside their headers. Compiled, not run.
#include <cublas_v2.h>
#include <cusolverDn.h>

#include "same_call.hpp"
#include "solver/solver.hpp"

namespace gpu::solver {
#define CHECK_FUNCTION(member, name, parameters) \
  CHECK_CALL(Status, member, parameters, cusolverDn##name)
#define CHECK_ROUTINE(member, real, complex, parameters)       \
  CHECK_CALL(Status, member, parameters, cusolverDnS##real)    \
  CHECK_CALL(Status, member, parameters, cusolverDnD##real)    \
  CHECK_CALL(Status, member, parameters, cusolverDnC##complex) \
  CHECK_CALL(Status, member, parameters, cusolverDnZ##complex)
#define CHECK_BLAS_FUNCTION(member, cuda, hip, parameters) \
  CHECK_CALL(Status, member, parameters, cuda)
#define CHECK_BLAS_ROUTINE(member, cuda, hip, parameters) \
  CHECK_CALL(Status, member, parameters, cublasS##cuda)   \
  CHECK_CALL(Status, member, parameters, cublasD##cuda)   \
  CHECK_CALL(Status, member, parameters, cublasC##cuda)   \
  CHECK_CALL(Status, member, parameters, cublasZ##cuda)
TENON_GPU_SOLVER_FUNCTIONS(CHECK_FUNCTION)
#if CUSOLVER_VER_MAJOR >= 12
TENON_GPU_GEEV_FUNCTIONS(CHECK_FUNCTION)
#endif
TENON_GPU_SOLVER_ROUTINES(CHECK_ROUTINE)
TENON_GPU_DENSE_BLAS_FUNCTIONS(CHECK_BLAS_FUNCTION)
TENON_GPU_DENSE_BLAS_ROUTINES(CHECK_BLAS_ROUTINE)

namespace number = vendor::solver_number;
static_assert(number::kNotTransposed == CUBLAS_OP_N);
static_assert(number::kLower == CUBLAS_FILL_MODE_LOWER && number::kUpper == CUBLAS_FILL_MODE_UPPER);
static_assert(number::kLeft == CUBLAS_SIDE_LEFT && number::kRight == CUBLAS_SIDE_RIGHT);
static_assert(number::kNonUnit == CUBLAS_DIAG_NON_UNIT && number::kUnit == CUBLAS_DIAG_UNIT);
static_assert(number::kValues == CUSOLVER_EIG_MODE_NOVECTOR &&
              number::kVectors == CUSOLVER_EIG_MODE_VECTOR);
}  // namespace gpu::solver
