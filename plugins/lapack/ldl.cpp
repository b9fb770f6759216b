// SPDX-License-Identifier: Apache-2.0
// Factors of symmetric and Hermitian matrices that need not be definite, by Bunch and Kaufman's pivoting.
#include "kernels.hpp"

#include <tenon/signatures/factorization.h>

namespace tenon::lapack {
namespace {

constexpr int64_t kBlock = 64;  // columns that sytrf factors together, for which it wants room

tenon_status ldl_factor(tenon_ctx* ctx, const tenon_tensor* x, int32_t hermitian, tenon_tensor* ld,
                        tenon_tensor* pivots, tenon_err* err) {
  const Library* lapack = library("ldl_factor", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  return with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(x), to(ld);
    const Int n = from.rows();
    if (n == 0) return TENON_OK;
    const auto factor = hermitian ? lapack->routines<T>().hetrf : lapack->routines<T>().sytrf;
    const Int room = kBlock * n;
    const int64_t bytes =
        Scratch::bytes<T>(n * n) + Scratch::bytes<T>(room) + Scratch::bytes<int64_t>(n);
    return for_batch(ctx, from.count(), cube(n) / 3, bytes, failure, err,
                     [&](int64_t index, Scratch scratch) {
                       const Matrix<T> packed = by_columns(scratch.take<T>(n * n), n, n);
                       T* work = scratch.take<T>(room);
                       void* own = scratch.take<int64_t>(n);
                       copy(from[index], packed);
                       Int info = 0;  // singular matrices have factors too
                       factor("L", &n, packed.data, &n, own, work, &room, &info, 1);
                       for (int64_t j = 1; j < n; ++j)
                         for (int64_t i = 0; i < j; ++i) packed(i, j) = T{};
                       copy(packed, to[index]);
                       int64_t* row = static_cast<int64_t*>(pivots->data) + index * n;
                       for (int64_t i = 0; i < n; ++i) row[i] = lapack->read(own, i);
                       return 0;
                     });
  });
}
TENON_BOX_ldl_factor(ldl_factor_boxed, ldl_factor);

// LAPACK would exchange rows beyond the matrix.
tenon_status check_pivots(const Batch<int64_t>& pivots, int64_t n, tenon_err* err) {
  for (int64_t index = 0, count = pivots.count(); index < count; ++index) {
    const Matrix<int64_t> of = pivots[index];
    const auto names_row = [&](int64_t i) { return of(i, 0) != 0 && std::abs(of(i, 0)) <= n; };
    for (int64_t i = 0; i < n; ++i) {
      const int64_t first = i;
      const bool is_pair = of(i, 0) < 0;
      if (is_pair) ++i;
      if (!names_row(first) || (is_pair && (i == n || of(i, 0) > 0 || !names_row(i))))
        return fail_format(
            err, TENON_OUT_OF_RANGE,
            "[ldl_solve] expected pivots as ldl_factor gives them, rows from 1 to %lld "
            "or negative ones in pairs, got %lld at %lld",
            static_cast<long long>(n), static_cast<long long>(of(first, 0)),
            static_cast<long long>(first));
    }
  }
  return TENON_OK;
}

tenon_status ldl_solve(tenon_ctx* ctx, const tenon_tensor* ld, const tenon_tensor* pivots,
                       const tenon_tensor* b, int32_t hermitian, tenon_tensor* out,
                       tenon_err* err) {
  const Library* lapack = library("ldl_solve", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  return with_type(out->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> factors(ld), right(b), to(out);
    const Batch<int64_t> rows(pivots, true);
    const Int n = factors.rows(), columns = to.columns();
    if (out->numel == 0) return TENON_OK;
    TENON_TRY(check_pivots(rows, n, err));
    const auto solve = hermitian ? lapack->routines<T>().hetrs : lapack->routines<T>().sytrs;
    const double work = static_cast<double>(n * n) * static_cast<double>(columns);
    const int64_t bytes =
        Scratch::bytes<T>(n * n) + Scratch::bytes<T>(n * columns) + Scratch::bytes<int64_t>(n);
    return for_batch(
        ctx, to.count(), work, bytes, failure, err, [&](int64_t index, Scratch scratch) {
          const Matrix<T> packed = by_columns(scratch.take<T>(n * n), n, n);
          const Matrix<T> result = by_columns(scratch.take<T>(n * columns), n, columns);
          void* own = scratch.take<int64_t>(n);
          copy(factors.at(index, to.leading()), packed);
          copy(right.at(index, to.leading()), result);
          const Matrix<int64_t> chosen = rows.at(index, to.leading());
          for (int64_t i = 0; i < n; ++i) lapack->write(own, i, chosen(i, 0));
          Int info = 0;
          solve("L", &n, &columns, packed.data, &n, own, result.data, &n, &info, 1);
          copy(result, to[index]);
          return 0;
        });
  });
}
TENON_BOX_ldl_solve(ldl_solve_boxed, ldl_solve);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_ldl_factor(ldl_factor, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_ldl_solve(ldl_solve, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0)};

}  // namespace

KernelList ldl_kernels() { return kKernels; }

}  // namespace tenon::lapack
