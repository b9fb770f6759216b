// SPDX-License-Identifier: Apache-2.0
// triangular_solve, by trsm of BLAS.
#include "kernels.hpp"

#include <tenon/signatures/factorization.h>

namespace tenon::lapack {
namespace {

// a @ x == b is x.T @ a.T == b.T, and LAPACK sees the transpose of what rows hold: the side and the
// triangle change.
tenon_status triangular_solve(tenon_ctx* ctx, const tenon_tensor* a, const tenon_tensor* b,
                              int32_t upper, int32_t left, int32_t unitriangular, tenon_tensor* out,
                              tenon_err* err) {
  const Library* lapack = library("triangular_solve", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  return with_type(out->dtype, [&]<class T>(T one) -> tenon_status {
    const Batch<T> matrices(a), right(b), to(out);
    const Int n = matrices.rows(), rows = to.rows(), columns = to.columns();
    if (out->numel == 0) return TENON_OK;
    one = T(1);
    const double work = static_cast<double>(out->numel / to.count()) * static_cast<double>(n);
    return for_batch(ctx, to.count(), work, Scratch::bytes<T>(n * n), failure, err,
                     [&](int64_t index, Scratch scratch) {
                       Matrix<T> matrix = matrices.at(index, to.leading());
                       if (matrix.column_stride != 1 || matrix.row_stride < n) {
                         const Matrix<T> packed = by_rows(scratch.take<T>(n * n), n, n);
                         copy(matrix, packed);
                         matrix = packed;
                       }
                       const Matrix<T> result = to[index];
                       copy(right.at(index, to.leading()), result);
                       const Int lda = matrix.row_stride;
                       lapack->routines<T>().trsm(left ? "R" : "L", upper ? "L" : "U", "N",
                                                  unitriangular ? "U" : "N", &columns, &rows, &one,
                                                  matrix.data, &lda, result.data, &columns, 1, 1, 1,
                                                  1);
                       return 0;
                     });
  });
}
TENON_BOX_triangular_solve(triangular_solve_boxed, triangular_solve);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_triangular_solve(triangular_solve, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0)};

}  // namespace

KernelList triangular_kernels() { return kKernels; }

}  // namespace tenon::lapack
