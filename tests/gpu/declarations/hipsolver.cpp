// SPDX-License-Identifier: Apache-2.0
// The functions and numbers that plugins/rocm declares of hipSOLVER and hipBLAS, beside their headers. Compiled, not run.
#define __HIP_PLATFORM_AMD__ 1
#include <hipblas/hipblas.h>
#include <hipsolver/hipsolver.h>

#include "same_call.hpp"
#include "solver/solver.hpp"

namespace gpu::solver {
#define CHECK_FUNCTION(member, name, parameters) \
  CHECK_CALL(Status, member, parameters, hipsolverDn##name)
#define CHECK_ROUTINE(member, real, complex, parameters)        \
  CHECK_CALL(Status, member, parameters, hipsolverDnS##real)    \
  CHECK_CALL(Status, member, parameters, hipsolverDnD##real)    \
  CHECK_CALL(Status, member, parameters, hipsolverDnC##complex) \
  CHECK_CALL(Status, member, parameters, hipsolverDnZ##complex)
#define CHECK_BLAS_FUNCTION(member, cuda, hip, parameters) \
  CHECK_CALL(Status, member, parameters, hip)
#define CHECK_BLAS_ROUTINE(member, cuda, hip, parameters) \
  CHECK_CALL(Status, member, parameters, hipblasS##hip)   \
  CHECK_CALL(Status, member, parameters, hipblasD##hip)   \
  CHECK_CALL(Status, member, parameters, hipblasC##hip)   \
  CHECK_CALL(Status, member, parameters, hipblasZ##hip)
TENON_GPU_SOLVER_FUNCTIONS(CHECK_FUNCTION)
TENON_GPU_SOLVER_ROUTINES(CHECK_ROUTINE)
TENON_GPU_DENSE_BLAS_FUNCTIONS(CHECK_BLAS_FUNCTION)
TENON_GPU_DENSE_BLAS_ROUTINES(CHECK_BLAS_ROUTINE)

namespace number = vendor::solver_number;
static_assert(number::kNotTransposed == HIPBLAS_OP_N);
static_assert(number::kLower == HIPBLAS_FILL_MODE_LOWER &&
              number::kUpper == HIPBLAS_FILL_MODE_UPPER);
static_assert(number::kLeft == HIPBLAS_SIDE_LEFT && number::kRight == HIPBLAS_SIDE_RIGHT);
static_assert(number::kNonUnit == HIPBLAS_DIAG_NON_UNIT && number::kUnit == HIPBLAS_DIAG_UNIT);
static_assert(number::kValues == HIPSOLVER_EIG_MODE_NOVECTOR &&
              number::kVectors == HIPSOLVER_EIG_MODE_VECTOR);
}  // namespace gpu::solver
