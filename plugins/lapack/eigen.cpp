// SPDX-License-Identifier: Apache-2.0
// eigh and eigvalsh, by divide and conquer (syevd, heevd); eig and eigvals, by the QR algorithm (geev).
#include "kernels.hpp"

#include <tenon/signatures/factorization.h>

namespace tenon::lapack {
namespace {

constexpr const char* kExpected = "matrices whose eigenvalues converge";
constexpr const char* kHint = "scale the matrix, or use float64";

// -- Hermitian matrices ---------------------------------------------------------------------------

// LAPACK sees x.T, the conjugate of x: the same eigenvalues, and conjugate eigenvectors.
template <class T>
class Hermitian {
 public:
  Hermitian(const Library& lapack, bool vectors, bool upper, Int n)
      : lapack_(lapack), job_(vectors ? "V" : "N"), uplo_(upper ? "L" : "U"), n_(n) {
    T unread{}, best{};
    Real<T> value{}, best_real{};
    Int best_integers = 0, info = 0;
    const Int query = -1;
    call(&unread, &value, &best, &query, &best_real, &query, &best_integers, &query, &info);
    lwork_ = best_lwork<T>([&](T* work, const Int*, Int*) { *work = best; });
    lrwork_ = best_lwork<Real<T>>([&](Real<T>* work, const Int*, Int*) { *work = best_real; });
    liwork_ = std::max<Int>(1, lapack_.read(best_integers));
  }
  int64_t bytes() const {
    return Scratch::bytes<T>(n_ * n_) + Scratch::bytes<T>(lwork_) +
           Scratch::bytes<Real<T>>(lrwork_) + Scratch::bytes<int64_t>(liwork_);
  }
  int64_t run(const Matrix<T>& from, Real<T>* w, const Matrix<T>* vectors, Scratch scratch) const {
    const Matrix<T> packed = by_rows(scratch.take<T>(n_ * n_), n_, n_);
    copy(from, packed);
    const bool lower = *uplo_ == 'U';  // of what rows hold
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t j = lower ? 0 : i; j < (lower ? i + 1 : n_); ++j)
        if (!is_finite(packed(i, j))) return kNotFinite;
    T* work = scratch.take<T>(lwork_);
    auto* real = scratch.take<Real<T>>(lrwork_);
    Int info = 0;
    call(packed.data, w, work, &lwork_, real, &lrwork_, scratch.take<int64_t>(liwork_), &liwork_,
         &info);
    if (vectors)
      for (int64_t j = 0; j < n_; ++j)
        for (int64_t i = 0; i < n_; ++i) (*vectors)(i, j) = conjugate(packed.data[j * n_ + i]);
    return lapack_.read(info);
  }

 private:
  void call(T* x, Real<T>* w, T* work, In lwork, Real<T>* real, In lrwork, void* integers,
            In liwork, Int* info) const {
    if constexpr (kIsComplex<T>)
      lapack_.routines<T>().syevd(job_, uplo_, &n_, x, &n_, w, work, lwork, real, lrwork, integers,
                                  liwork, info, 1, 1);
    else
      lapack_.routines<T>().syevd(job_, uplo_, &n_, x, &n_, w, work, lwork, integers, liwork, info,
                                  1, 1);
  }

  const Library& lapack_;
  const char *job_, *uplo_;
  Int n_;
  Int lwork_, lrwork_, liwork_;
};

tenon_status run_hermitian(const char* op, tenon_ctx* ctx, const tenon_tensor* x, bool upper,
                           tenon_tensor* w, tenon_tensor* vectors, tenon_err* err) {
  const Library* lapack = library(op, err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const tenon_status status = with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(x);
    if (x->numel == 0) return TENON_OK;
    const Hermitian<T> hermitian(*lapack, vectors != nullptr, upper, from.rows());
    const double work = cube(from.rows()) * (vectors ? 9 : 4);
    return for_batch(ctx, from.count(), work, hermitian.bytes(), failure, err,
                     [&](int64_t index, Scratch scratch) {
                       Real<T>* values = static_cast<Real<T>*>(w->data) + index * from.rows();
                       if (!vectors) return hermitian.run(from[index], values, nullptr, scratch);
                       const Matrix<T> to = Batch<T>(vectors)[index];
                       return hermitian.run(from[index], values, &to, scratch);
                     });
  });
  return finish(status, op, failure, Batch<char>(x).leading(), kExpected, kHint, err);
}

tenon_status eigh(tenon_ctx* ctx, const tenon_tensor* x, int32_t upper, tenon_tensor* w,
                  tenon_tensor* v, tenon_err* err) {
  return run_hermitian("eigh", ctx, x, upper, w, v, err);
}
TENON_BOX_eigh(eigh_boxed, eigh);

tenon_status eigvalsh(tenon_ctx* ctx, const tenon_tensor* x, int32_t upper, tenon_tensor* w,
                      tenon_err* err) {
  return run_hermitian("eigvalsh", ctx, x, upper, w, nullptr, err);
}
TENON_BOX_eigvalsh(eigvalsh_boxed, eigvalsh);

// -- general matrices -----------------------------------------------------------------------------

template <class T>
class General {
 public:
  using Complex = std::complex<Real<T>>;
  General(const Library& lapack, bool vectors, Int n)
      : lapack_(lapack), job_(vectors ? "V" : "N"), n_(n) {
    T unread{};
    Real<T> value{};
    lwork_ = best_lwork<T>([&](T* work, In size, Int* info) {
      call(&unread, &unread, &value, &unread, work, size, info);
    });
  }
  int64_t bytes() const {
    return 2 * Scratch::bytes<T>(n_ * n_) + Scratch::bytes<T>(lwork_) + Scratch::bytes<T>(n_) +
           Scratch::bytes<Real<T>>(2 * n_);
  }
  int64_t run(const Matrix<T>& from, Complex* w, const Matrix<Complex>* vectors,
              Scratch scratch) const {
    const Matrix<T> packed = by_columns(scratch.take<T>(n_ * n_), n_, n_);
    const Matrix<T> found = by_columns(scratch.take<T>(n_ * n_), n_, n_);
    copy(from, packed);
    if (!all_finite(packed)) return kNotFinite;
    T* values = scratch.take<T>(n_);
    auto* real = scratch.take<Real<T>>(2 * n_);
    Int info = 0;
    call(packed.data, values, real, found.data, scratch.take<T>(lwork_), &lwork_, &info);
    for (int64_t j = 0; j < n_; ++j) {
      if constexpr (kIsComplex<T>)
        w[j] = values[j];
      else
        w[j] = Complex(values[j], real[j]);
    }
    if (vectors) unpack(w, found, *vectors);
    return lapack_.read(info);
  }

 private:
  // `w`: all values, or their real parts; `real`: their imaginary parts, or scratch memory.
  void call(T* x, T* w, Real<T>* real, T* vectors, T* work, In lwork, Int* info) const {
    const Int one = 1;
    T unread{};
    if constexpr (kIsComplex<T>)
      lapack_.routines<T>().geev("N", job_, &n_, x, &n_, w, &unread, &one, vectors, &n_, work,
                                 lwork, real, info, 1, 1);
    else
      lapack_.routines<T>().geev("N", job_, &n_, x, &n_, w, real, &unread, &one, vectors, &n_, work,
                                 lwork, info, 1, 1);
  }

  // Real matrices have conjugate pairs of vectors, stored as real and imaginary parts.
  void unpack(const Complex* w, const Matrix<T>& found, const Matrix<Complex>& to) const {
    if constexpr (kIsComplex<T>) {
      copy(found, to);
    } else {
      for (int64_t j = 0; j < n_; ++j) {
        const bool is_pair = w[j].imag() != 0 && j + 1 < n_;
        for (int64_t i = 0; i < n_; ++i) {
          to(i, j) = is_pair ? Complex(found(i, j), found(i, j + 1)) : Complex(found(i, j));
          if (is_pair) to(i, j + 1) = std::conj(to(i, j));
        }
        j += is_pair;
      }
    }
  }

  const Library& lapack_;
  const char* job_;
  Int n_;
  Int lwork_;
};

tenon_status run_general(const char* op, tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* w,
                         tenon_tensor* vectors, tenon_err* err) {
  const Library* lapack = library(op, err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const tenon_status status = with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    using Complex = typename General<T>::Complex;
    const Batch<T> from(x);
    if (x->numel == 0) return TENON_OK;
    const General<T> general(*lapack, vectors != nullptr, from.rows());
    const double work = cube(from.rows()) * (vectors ? 25 : 10);
    return for_batch(ctx, from.count(), work, general.bytes(), failure, err,
                     [&](int64_t index, Scratch scratch) {
                       Complex* values = static_cast<Complex*>(w->data) + index * from.rows();
                       if (!vectors) return general.run(from[index], values, nullptr, scratch);
                       const Matrix<Complex> to = Batch<Complex>(vectors)[index];
                       return general.run(from[index], values, &to, scratch);
                     });
  });
  return finish(status, op, failure, Batch<char>(x).leading(), kExpected, kHint, err);
}

tenon_status eig(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* w, tenon_tensor* v,
                 tenon_err* err) {
  return run_general("eig", ctx, x, w, v, err);
}
TENON_BOX_eig(eig_boxed, eig);

tenon_status eigvals(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* w, tenon_err* err) {
  return run_general("eigvals", ctx, x, w, nullptr, err);
}
TENON_BOX_eigvals(eigvals_boxed, eigvals);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_eigh(eigh, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_eigvalsh(eigvalsh, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_eig(eig, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_eigvals(eigvals, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0)};

}  // namespace

KernelList eigen_kernels() { return kKernels; }

}  // namespace tenon::lapack
