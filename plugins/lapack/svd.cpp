// SPDX-License-Identifier: Apache-2.0
// svd and svdvals, by divide and conquer (gesdd).
#include "kernels.hpp"

#include <tenon/signatures/factorization.h>

namespace tenon::lapack {
namespace {

// LAPACK sees x.T == u' @ diag(s) @ vh', so that x == vh'.T @ diag(s) @ u'.T: the memory of vh', read
// by rows, is u, and that of u' is vh. Results are written in place.
template <class T>
class Decomposition {
 public:
  // `job`: A for square u and vh, S for as many vectors as there are values, N for none.
  Decomposition(const Library& lapack, const char* job, Int rows, Int columns)
      : lapack_(lapack),
        job_(job),
        m_(columns),
        n_(rows),
        k_(std::min(rows, columns)),
        vectors_(*job == 'A'   ? n_
                 : *job == 'S' ? k_
                               : 1) {
    T unread{};
    Real<T> value{};
    lwork_ = best_lwork<T>([&](T* work, In size, Int* info) {
      call(&unread, &value, &unread, &unread, work, size, &value, nullptr, info);
    });
  }
  int64_t bytes() const {
    return Scratch::bytes<T>(m_ * n_) + Scratch::bytes<T>(lwork_) +
           Scratch::bytes<int64_t>(8 * k_) + Scratch::bytes<Real<T>>(real_work());
  }
  double work() const { return 8.0 * static_cast<double>(m_ * n_ * k_); }
  int64_t run(const Matrix<T>& from, T* u, Real<T>* s, T* vh, Scratch scratch) const {
    const Matrix<T> packed = by_rows(scratch.take<T>(m_ * n_), n_, m_);
    copy(from, packed);
    if (!all_finite(packed)) return kNotFinite;
    T* work = scratch.take<T>(lwork_);
    void* integers = scratch.take<int64_t>(8 * k_);
    Int info = 0;
    call(packed.data, s, vh, u, work, &lwork_, scratch.take<Real<T>>(real_work()), integers, &info);
    return lapack_.read(info);
  }

 private:
  int64_t real_work() const {
    const int64_t large = std::max(m_, n_);
    return kIsComplex<T> ? k_ * std::max(5 * k_ + 7, 2 * large + 2 * k_ + 1) : 0;
  }
  void call(T* x, Real<T>* s, T* u, T* vh, T* work, In size, Real<T>* real, void* integers,
            Int* info) const {
    const Int ldu = m_, *ldvh = &vectors_;
    if constexpr (kIsComplex<T>)
      lapack_.routines<T>().gesdd(job_, &m_, &n_, x, &m_, s, u, &ldu, vh, ldvh, work, size, real,
                                  integers, info, 1);
    else
      lapack_.routines<T>().gesdd(job_, &m_, &n_, x, &m_, s, u, &ldu, vh, ldvh, work, size,
                                  integers, info, 1);
  }

  const Library& lapack_;
  const char* job_;
  Int m_, n_, k_, vectors_;  // extents as LAPACK sees them; the rows of vh'
  Int lwork_ = 0;
};

constexpr const char* kExpected = "matrices whose singular values converge";
constexpr const char* kHint = "scale the matrix, or use float64";

void set_identity(const tenon_tensor* x, auto one) {
  using T = decltype(one);
  const Batch<T> batch(x);
  if (x->numel == 0) return;
  for (int64_t index = 0; index < batch.count(); ++index)
    for (int64_t i = 0; i < batch.rows(); ++i)
      for (int64_t j = 0; j < batch.columns(); ++j) batch[index](i, j) = T(i == j);
}

tenon_status svd(tenon_ctx* ctx, const tenon_tensor* x, int32_t full_matrices, tenon_tensor* u,
                 tenon_tensor* s, tenon_tensor* vh, tenon_err* err) {
  const Library* lapack = library("svd", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const tenon_status status = with_type(x->dtype, [&]<class T>(T one) -> tenon_status {
    const Batch<T> from(x), to_u(u), to_vh(vh);
    if (x->numel == 0) {
      set_identity(u, one);
      set_identity(vh, one);
      return TENON_OK;
    }
    const Decomposition<T> decomposition(*lapack, full_matrices ? "A" : "S", from.rows(),
                                         from.columns());
    const int64_t k = std::min(from.rows(), from.columns());
    return for_batch(ctx, from.count(), decomposition.work(), decomposition.bytes(), failure, err,
                     [&](int64_t index, Scratch scratch) {
                       return decomposition.run(from[index], to_u[index].data,
                                                static_cast<Real<T>*>(s->data) + index * k,
                                                to_vh[index].data, scratch);
                     });
  });
  return finish(status, "svd", failure, Batch<char>(x).leading(), kExpected, kHint, err);
}
TENON_BOX_svd(svd_boxed, svd);

tenon_status svdvals(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  const Library* lapack = library("svdvals", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const tenon_status status = with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(x);
    if (x->numel == 0) return TENON_OK;
    const Decomposition<T> decomposition(*lapack, "N", from.rows(), from.columns());
    const int64_t k = std::min(from.rows(), from.columns());
    return for_batch(ctx, from.count(), decomposition.work() / 2, decomposition.bytes(), failure,
                     err, [&](int64_t index, Scratch scratch) {
                       T unread[2] = {};
                       return decomposition.run(from[index], unread,
                                                static_cast<Real<T>*>(out->data) + index * k,
                                                unread + 1, scratch);
                     });
  });
  return finish(status, "svdvals", failure, Batch<char>(x).leading(), kExpected, kHint, err);
}
TENON_BOX_svdvals(svdvals_boxed, svdvals);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_svd(svd, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_svdvals(svdvals, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0)};

}  // namespace

KernelList svd_kernels() { return kKernels; }

}  // namespace tenon::lapack
