// SPDX-License-Identifier: Apache-2.0
// cholesky.
#include "kernels.hpp"

#include <tenon/signatures/factorization.h>

namespace tenon::lapack {
namespace {

// A row of the lower triangle is a column of the upper one to LAPACK. Of a Hermitian matrix it sees
// the conjugate, x.T == conj(u.mH @ u) there, so that the memory of u read by rows is the factor.
tenon_status cholesky(tenon_ctx* ctx, const tenon_tensor* x, int32_t upper, tenon_tensor* out,
                      tenon_err* err) {
  const Library* lapack = library("cholesky", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const tenon_status status = with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(x), to(out);
    const Int n = from.rows();
    if (n == 0) return TENON_OK;
    return for_batch(ctx, from.count(), cube(n) / 3, 0, failure, err, [&](int64_t index, Scratch) {
      const Matrix<T> result = to[index];
      copy(from[index], result);
      Int info = 0;
      lapack->routines<T>().potrf(upper ? "L" : "U", &n, result.data, &n, &info, 1);
      for (int64_t i = 0; i < n; ++i) {
        T* row = result.data + i * n;
        std::fill(upper ? row : row + i + 1, upper ? row + i : row + n, T{});
      }
      return lapack->read(info);
    });
  });
  return finish(status, "cholesky", failure, Batch<char>(x).leading(),
                "positive definite matrices, got a leading minor that is not positive",
                "add a small multiple of the identity, or use eigh or lu_factor", err);
}
TENON_BOX_cholesky(cholesky_boxed, cholesky);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_cholesky(cholesky, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0)};

}  // namespace

KernelList cholesky_kernels() { return kKernels; }

}  // namespace tenon::lapack
