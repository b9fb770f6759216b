// SPDX-License-Identifier: Apache-2.0
#include "solver/solver.hpp"

#include "runtime/library.hpp"

namespace gpu::solver {
namespace {

#define TENON_GPU_SYMBOL(letter, table, member, name)                   \
  {TENON_GPU_NAME(cusolverDn##letter##name, hipsolverDn##letter##name), \
   offsetof(Library, table) + offsetof(Routines, member)},
#define TENON_GPU_REAL(member, real, complex, parameters) \
  TENON_GPU_SYMBOL(S, float32, member, real)              \
  TENON_GPU_SYMBOL(D, float64, member, real)
#define TENON_GPU_COMPLEX(member, real, complex, parameters) \
  TENON_GPU_SYMBOL(C, complex64, member, complex)            \
  TENON_GPU_SYMBOL(Z, complex128, member, complex)
#define TENON_GPU_FUNCTION(member, name, parameters) \
  {TENON_GPU_NAME(cusolverDn##name, hipsolverDn##name), offsetof(Library, member)},
#define TENON_GPU_OPTIONAL(member, name, parameters) \
  {TENON_GPU_NAME(cusolverDn##name, hipsolverDn##name), offsetof(Library, member), true},

constexpr Symbol kSolverSymbols[] = {
    TENON_GPU_SOLVER_FUNCTIONS(TENON_GPU_FUNCTION) TENON_GPU_GEEV_FUNCTIONS(TENON_GPU_OPTIONAL)
        TENON_GPU_SOLVER_ROUTINES(TENON_GPU_REAL) TENON_GPU_SOLVER_ROUTINES(TENON_GPU_COMPLEX)};

#define TENON_GPU_BLAS_SYMBOL(letter, table, member, cuda, hip) \
  {TENON_GPU_NAME(cublas##letter##cuda, hipblas##letter##hip),  \
   offsetof(Library, table) + offsetof(Routines, member)},
#define TENON_GPU_BLAS_ROUTINE(member, cuda, hip, parameters) \
  TENON_GPU_BLAS_SYMBOL(S, float32, member, cuda, hip)        \
  TENON_GPU_BLAS_SYMBOL(D, float64, member, cuda, hip)        \
  TENON_GPU_BLAS_SYMBOL(C, complex64, member, cuda, hip)      \
  TENON_GPU_BLAS_SYMBOL(Z, complex128, member, cuda, hip)
#define TENON_GPU_BLAS_FUNCTION(member, cuda, hip, parameters) \
  {TENON_GPU_NAME(cuda, hip), offsetof(Library, member)},

constexpr Symbol kBlasSymbols[] = {TENON_GPU_DENSE_BLAS_FUNCTIONS(TENON_GPU_BLAS_FUNCTION)
                                       TENON_GPU_DENSE_BLAS_ROUTINES(TENON_GPU_BLAS_ROUTINE)};

const KernelTable<Library>& opened() {
  static const auto* table =
      new KernelTable<Library>{{vendor::kSolver, vendor::kSolverVariable, vendor::kSolverNames,
                                vendor::kInstallSolver, kSolverSymbols},
                               {vendor::kDenseBlas, vendor::kDenseBlasVariable,
                                vendor::kDenseBlasNames, vendor::kInstallDenseBlas, kBlasSymbols}};
  return *table;
}

}  // namespace

const Library* library() { return opened().functions(); }
const char* library_name() { return opened().name(); }
const char* library_problem() { return opened().problem(); }

}  // namespace gpu::solver
