// SPDX-License-Identifier: Apache-2.0
// lstsq_solve, by singular values (gelsd).
#include "kernels.hpp"

#include <tenon/signatures/factorization.h>

#include <limits>

namespace tenon::lapack {
namespace {

template <class T>
class LeastSquares {
 public:
  LeastSquares(const Library& lapack, Int m, Int n, Int columns, const tenon_value* rcond)
      : lapack_(lapack), m_(m), n_(n), columns_(columns), longer_(std::max(m, n)) {
    rcond_ = rcond->tag == TENON_VALUE_NONE
                 ? std::numeric_limits<Real<T>>::epsilon() * static_cast<Real<T>>(longer_)
                 : static_cast<Real<T>>(tenon_arg_float(rcond));
    T unread{};
    Real<T> value{};
    Real<T> best_real[2] = {};
    Int integers[2] = {}, rank = 0;
    lwork_ = best_lwork<T>([&](T* work, In size, Int* info) {
      call(&unread, &unread, &value, &rank, work, size, best_real, integers, info);
    });
    lrwork_ = kIsComplex<T> ? static_cast<int64_t>(best_real[0]) + 1 : 0;
    liwork_ = std::max<int64_t>(1, lapack_.read(integers[0])) + 8;
  }
  int64_t bytes() const {
    return Scratch::bytes<T>(m_ * n_) + Scratch::bytes<T>(longer_ * columns_) +
           Scratch::bytes<T>(lwork_) + Scratch::bytes<Real<T>>(lrwork_) +
           Scratch::bytes<int64_t>(liwork_);
  }
  double work() const { return 10.0 * static_cast<double>(m_ * n_ * std::min(m_, n_)); }
  int64_t run(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& x, int64_t* rank, Real<T>* s,
              Scratch scratch) const {
    const Matrix<T> packed = by_columns(scratch.take<T>(m_ * n_), m_, n_);
    T* sides = scratch.take<T>(longer_ * columns_);
    copy(a, packed);
    copy(b, Matrix<T>{sides, m_, columns_, 1, longer_});
    if (!all_finite(packed)) return kNotFinite;
    T* work = scratch.take<T>(lwork_);
    auto* real = scratch.take<Real<T>>(lrwork_);
    Int info = 0, found = 0;
    call(packed.data, sides, s, &found, work, &lwork_, real, scratch.take<int64_t>(liwork_), &info);
    copy(Matrix<T>{sides, n_, columns_, 1, longer_}, x);
    *rank = lapack_.read(found);
    return lapack_.read(info);
  }

 private:
  void call(T* a, T* b, Real<T>* s, Int* rank, T* work, In lwork, Real<T>* real, void* integers,
            Int* info) const {
    if constexpr (kIsComplex<T>)
      lapack_.routines<T>().gelsd(&m_, &n_, &columns_, a, &m_, b, &longer_, s, &rcond_, rank, work,
                                  lwork, real, integers, info);
    else
      lapack_.routines<T>().gelsd(&m_, &n_, &columns_, a, &m_, b, &longer_, s, &rcond_, rank, work,
                                  lwork, integers, info);
  }

  const Library& lapack_;
  Int m_, n_, columns_, longer_;
  Real<T> rcond_;
  Int lwork_, lrwork_, liwork_;
};

tenon_status lstsq_solve(tenon_ctx* ctx, const tenon_tensor* a, const tenon_tensor* b,
                         const tenon_value* rcond, tenon_tensor* solution, tenon_tensor* rank,
                         tenon_tensor* s, tenon_err* err) {
  const Library* lapack = library("lstsq", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const tenon_status status = with_type(a->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> matrices(a), right(b), to(solution);
    const int64_t m = matrices.rows(), n = matrices.columns(), k = std::min(m, n);
    if (k == 0 || solution->numel == 0) {
      // Tensors of no elements may have no memory, which memset() must not be given.
      std::fill_n(static_cast<T*>(solution->data), solution->numel, T{});
      std::fill_n(static_cast<int64_t*>(rank->data), rank->numel, int64_t{0});
      std::fill_n(static_cast<Real<T>*>(s->data), s->numel, Real<T>{});
      if (k == 0 || to.count() == 0) return TENON_OK;
    }
    const LeastSquares<T> problem(*lapack, m, n, std::max<int64_t>(1, right.columns()), rcond);
    return for_batch(ctx, to.count(), problem.work(), problem.bytes(), failure, err,
                     [&](int64_t index, Scratch scratch) {
                       return problem.run(matrices.at(index, to.leading()),
                                          right.at(index, to.leading()), to[index],
                                          static_cast<int64_t*>(rank->data) + index,
                                          static_cast<Real<T>*>(s->data) + index * k, scratch);
                     });
  });
  return finish(status, "lstsq", failure, Batch<char>(solution).leading(),
                "matrices whose singular values converge", "scale the matrix", err);
}
TENON_BOX_lstsq_solve(lstsq_solve_boxed, lstsq_solve);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_lstsq_solve(lstsq_solve, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0)};

}  // namespace

KernelList lstsq_kernels() { return kKernels; }

}  // namespace tenon::lapack
