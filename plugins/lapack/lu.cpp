// SPDX-License-Identifier: Apache-2.0
// What Gaussian elimination gives: lu_factor, solve, inv, adjugate.
#include "kernels.hpp"

#include <tenon/signatures/factorization.h>

namespace tenon::lapack {
namespace {

constexpr const char* kSingular = "invertible matrices, got a singular one";

tenon_status lu_factor(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* lu,
                       tenon_tensor* pivots, tenon_err* err) {
  const Library* lapack = library("lu_factor", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  return with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(x), to(lu);
    const Int m = from.rows(), n = from.columns(), k = std::min(m, n);
    if (k == 0) return TENON_OK;
    const int64_t bytes = Scratch::bytes<T>(m * n) + Scratch::bytes<int64_t>(k);
    return for_batch(ctx, from.count(), static_cast<double>(m * n * k), bytes, failure, err,
                     [&](int64_t index, Scratch scratch) {
                       const Matrix<T> packed = by_columns(scratch.take<T>(m * n), m, n);
                       void* own = scratch.take<int64_t>(k);
                       copy(from[index], packed);
                       Int info = 0;  // singular matrices have factors too
                       lapack->routines<T>().getrf(&m, &n, packed.data, &m, own, &info);
                       copy(packed, to[index]);
                       int64_t* row = static_cast<int64_t*>(pivots->data) + index * k;
                       for (int64_t i = 0; i < k; ++i) row[i] = lapack->read(own, i) - 1;
                       return 0;
                     });
  });
}
TENON_BOX_lu_factor(lu_factor_boxed, lu_factor);

tenon_status lu_permutation(tenon_ctx*, const tenon_tensor* pivots, int64_t rows, tenon_tensor* out,
                            tenon_err* err) {
  const int64_t k = pivots->shape[pivots->ndim - 1];
  if (rows == 0) return TENON_OK;
  for (int64_t index = 0; index < out->numel / rows; ++index) {
    const int64_t* swaps = static_cast<const int64_t*>(pivots->data) + index * k;
    int64_t* row = static_cast<int64_t*>(out->data) + index * rows;
    for (int64_t i = 0; i < rows; ++i) row[i] = i;
    for (int64_t i = 0; i < k; ++i) {
      if (swaps[i] < 0 || swaps[i] >= rows)
        return fail_format(err, TENON_OUT_OF_RANGE,
                           "[lu_permutation] expected pivots in [0, %lld), got %lld",
                           static_cast<long long>(rows), static_cast<long long>(swaps[i]));
      std::swap(row[i], row[swaps[i]]);
    }
  }
  return TENON_OK;
}
TENON_BOX_lu_permutation(lu_permutation_boxed, lu_permutation);

tenon_status solve(tenon_ctx* ctx, const tenon_tensor* a, const tenon_tensor* b, tenon_tensor* out,
                   tenon_err* err) {
  const Library* lapack = library("solve", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const bool vector = b->ndim == 1;
  const tenon_status status = with_type(a->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> matrices(a), right(b, vector), to(out, vector);
    const Int n = matrices.rows(), k = right.columns();
    if (out->numel == 0) return TENON_OK;
    const int64_t bytes =
        Scratch::bytes<T>(n * n) + Scratch::bytes<T>(n * k) + Scratch::bytes<int64_t>(n);
    return for_batch(ctx, to.count(), cube(n), bytes, failure, err,
                     [&](int64_t index, Scratch scratch) {
                       const Matrix<T> matrix = by_columns(scratch.take<T>(n * n), n, n);
                       const Matrix<T> result = by_columns(scratch.take<T>(n * k), n, k);
                       copy(matrices.at(index, to.leading()), matrix);
                       copy(right.at(index, to.leading()), result);
                       Int info = 0;
                       lapack->routines<T>().gesv(&n, &k, matrix.data, &n, scratch.take<int64_t>(n),
                                                  result.data, &n, &info);
                       copy(result, to[index]);
                       return lapack->read(info);
                     });
  });
  return finish(status, "solve", failure, Batch<char>(out, vector).leading(), kSingular,
                "use lstsq", err);
}
TENON_BOX_solve(solve_boxed, solve);

tenon_status inv(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  const Library* lapack = library("inv", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const tenon_status status = with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Routines<T>& routines = lapack->routines<T>();
    const Batch<T> from(x), to(out);
    const Int n = from.rows();
    if (out->numel == 0) return TENON_OK;
    const int64_t lwork = best_lwork<T>([&](T* work, In size, Int* info) {
      routines.getri(&n, static_cast<T*>(out->data), &n, nullptr, work, size, info);
    });
    const int64_t bytes = Scratch::bytes<int64_t>(n) + Scratch::bytes<T>(lwork);
    return for_batch(
        ctx, from.count(), 2 * cube(n), bytes, failure, err, [&](int64_t index, Scratch scratch) {
          const Matrix<T> result = to[index];
          void* pivots = scratch.take<int64_t>(n);
          copy(from[index], result);
          Int info = 0;
          routines.getrf(&n, &n, result.data, &n, pivots, &info);
          if (lapack->read(info) == 0)
            routines.getri(&n, result.data, &n, pivots, scratch.take<T>(lwork), &lwork, &info);
          return lapack->read(info);
        });
  });
  return finish(status, "inv", failure, Batch<char>(x).leading(), kSingular, "use pinv", err);
}
TENON_BOX_inv(inv_boxed, inv);

// The inverse times the determinant, where no pivot is zero. Otherwise x == u @ diag(s) @ vh gives
// det(u) * det(vh) * v @ diag(products of all other s) @ u.mH, and both determinants are products of
// pivots of LU factorizations.
template <class T>
class Adjugate {
 public:
  Adjugate(const Library& lapack, Int n, T* memory)
      : lapack_(lapack), routines_(lapack.routines<T>()), n_(n) {
    inverse_work_ = best_lwork<T>([&](T* work, In size, Int* info) {
      routines_.getri(&n_, memory, &n_, nullptr, work, size, info);
    });
    values_work_ = best_lwork<T>([&](T* work, In size, Int* info) {
      values(memory, nullptr, memory, memory, work, size, nullptr, nullptr, info);
    });
  }

  int64_t bytes() const {
    return 3 * Scratch::bytes<T>(n_ * n_) + 2 * Scratch::bytes<int64_t>(8 * n_) +
           Scratch::bytes<Real<T>>(n_) + Scratch::bytes<Real<T>>(real_work()) +
           Scratch::bytes<T>(std::max(inverse_work_, values_work_));
  }

  int64_t run(const Matrix<T>& from, const Matrix<T>& to, Scratch scratch) const {
    void* pivots = scratch.take<int64_t>(8 * n_);
    T* work = scratch.take<T>(std::max(inverse_work_, values_work_));
    copy(from, to);
    Int info = 0;
    routines_.getrf(&n_, &n_, to.data, &n_, pivots, &info);
    if (lapack_.read(info) == 0) {
      const T scale = product_of_pivots(to.data, pivots);
      routines_.getri(&n_, to.data, &n_, pivots, work, &inverse_work_, &info);
      for (int64_t i = 0; i < n_ * n_; ++i) to.data[i] *= scale;
      return 0;
    }
    T* x = scratch.take<T>(n_ * n_);
    T* u = scratch.take<T>(n_ * n_);
    T* vh = scratch.take<T>(n_ * n_);
    auto* s = scratch.take<Real<T>>(n_);
    auto* real = scratch.take<Real<T>>(real_work());
    void* integers = scratch.take<int64_t>(8 * n_);
    copy(from, by_rows(x, n_, n_));
    if (!all_finite(by_rows(x, n_, n_))) return kNotFinite;
    info = 0;
    values(x, s, u, vh, work, &values_work_, real, integers, &info);
    if (lapack_.read(info) != 0) return lapack_.read(info);
    const T scale = determinant(u, x, pivots) * determinant(vh, x, pivots);
    for (int64_t k = 0; k < n_; ++k) {
      T others = scale;
      for (int64_t i = 0; i < n_; ++i)
        if (i != k) others *= s[i];
      for (int64_t i = 0; i < n_; ++i) u[k * n_ + i] *= conjugate(others);
    }
    const T one(1), zero(0);
    routines_.gemm("C", "C", &n_, &n_, &n_, &one, vh, &n_, u, &n_, &zero, to.data, &n_, 1, 1);
    return 0;
  }

 private:
  int64_t real_work() const { return kIsComplex<T> ? 7 * n_ * n_ + 7 * n_ : 0; }

  void values(T* x, Real<T>* s, T* u, T* vh, T* work, In size, Real<T>* real, void* integers,
              Int* info) const {
    if constexpr (kIsComplex<T>)
      routines_.gesdd("A", &n_, &n_, x, &n_, s, u, &n_, vh, &n_, work, size, real, integers, info,
                      1);
    else
      routines_.gesdd("A", &n_, &n_, x, &n_, s, u, &n_, vh, &n_, work, size, integers, info, 1);
  }

  T product_of_pivots(const T* lu, const void* pivots) const {
    T product(1);
    for (int64_t i = 0; i < n_; ++i)
      product *= lapack_.read(pivots, i) == i + 1 ? lu[i * n_ + i] : -lu[i * n_ + i];
    return product;
  }
  T determinant(const T* x, T* copied, void* pivots) const {
    std::copy_n(x, n_ * n_, copied);
    Int info = 0;
    routines_.getrf(&n_, &n_, copied, &n_, pivots, &info);
    return product_of_pivots(copied, pivots);
  }

  const Library& lapack_;
  const Routines<T>& routines_;
  Int n_;
  Int inverse_work_ = 0, values_work_ = 0;
};

tenon_status adjugate(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  const Library* lapack = library("adjugate", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const tenon_status status = with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(x), to(out);
    if (out->numel == 0) return TENON_OK;
    const Adjugate<T> adjugate(*lapack, from.rows(), static_cast<T*>(out->data));
    return for_batch(ctx, from.count(), 2 * cube(from.rows()), adjugate.bytes(), failure, err,
                     [&](int64_t index, Scratch scratch) {
                       return adjugate.run(from[index], to[index], scratch);
                     });
  });
  return finish(status, "adjugate", failure, Batch<char>(x).leading(),
                "matrices whose singular values converge", "scale the matrix", err);
}
TENON_BOX_adjugate(adjugate_boxed, adjugate);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_lu_factor(lu_factor, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_lu_permutation(lu_permutation, "cpu", uint64_t{1} << TENON_DTYPE_I64, 0, 0),
    TENON_KERNEL_solve(solve, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_inv(inv, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_adjugate(adjugate, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0)};

}  // namespace

KernelList lu_kernels() { return kKernels; }

}  // namespace tenon::lapack
