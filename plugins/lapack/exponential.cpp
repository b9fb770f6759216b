// SPDX-License-Identifier: Apache-2.0
// matrix_exp: scaling and squaring with a Padé approximant (Higham, The scaling and squaring method
// for the matrix exponential revisited, 2005). A matrix is divided by a power of two until its 1-norm
// is below the bound within which an approximant of some degree is exact to rounding; the result is
// squared as often.
#include "kernels.hpp"

#include <tenon/signatures/factorization.h>

#include <limits>

namespace tenon::lapack {
namespace {

struct Approximant {
  int degree;
  double bound_float, bound_double;  // of the 1-norm
  double coefficients[14];
};
constexpr Approximant kApproximants[] = {
    {3, 4.258730016922831e-1, 1.495585217958292e-2, {120, 60, 12, 1}},
    {5, 1.880152677804762, 2.539398330063230e-1, {30240, 15120, 3360, 420, 30, 1}},
    {7,
     3.925724783138660,
     9.504178996162932e-1,
     {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
    {9,
     0,
     2.097847961257068,
     {17643225600., 8821612800., 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1}},
    {13,
     0,
     5.371920351148152,
     {64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800.,
      129060195264000., 10559470521600., 670442572800., 33522128640., 1323241920., 40840800.,
      960960., 16380., 182., 1.}}};

template <class T>
class Exponential {
 public:
  Exponential(const Library& lapack, Int n) : lapack_(lapack), n_(n), size_(n * n) {}
  static constexpr int kMatrices = 7;
  int64_t bytes() const {
    return kMatrices * Scratch::bytes<T>(size_) + Scratch::bytes<int64_t>(n_);
  }

  // exp(x.T) is exp(x).T, so that rows may stand for columns.
  int64_t run(const Matrix<T>& from, const Matrix<T>& to, Scratch scratch) const {
    T* x = scratch.take<T>(size_);
    T* square = scratch.take<T>(size_);
    T* power = scratch.take<T>(size_);
    T* next = scratch.take<T>(size_);
    T* even = scratch.take<T>(size_);
    T* odd = to.data;
    T* sum = scratch.take<T>(size_);
    copy(from, by_rows(x, n_, n_));
    const Real<T> norm = norm1(x);
    if (!std::isfinite(norm)) {
      std::fill_n(to.data, size_, T(std::numeric_limits<Real<T>>::quiet_NaN()));
      return 0;
    }
    const Approximant* chosen = nullptr;
    int squarings = 0;
    constexpr bool is_float = sizeof(Real<T>) == 4;
    for (const Approximant& each : kApproximants) {
      const double bound = is_float ? each.bound_float : each.bound_double;
      if (bound == 0) continue;
      chosen = &each;
      if (norm <= bound) break;
      squarings = std::max(0, static_cast<int>(std::ceil(std::log2(norm / bound))));
    }
    if (norm <= (is_float ? chosen->bound_float : chosen->bound_double)) squarings = 0;
    const Real<T> scale = std::ldexp(Real<T>(1), -squarings);
    for (int64_t i = 0; i < size_; ++i) x[i] *= scale;

    // even: the terms of even powers; sum: those of odd ones, less one power.
    const double* b = chosen->coefficients;
    multiply(x, x, square);
    set_identity(power);
    for (int64_t i = 0; i < size_; ++i) {
      even[i] = power[i] * static_cast<Real<T>>(b[0]);
      sum[i] = power[i] * static_cast<Real<T>>(b[1]);
    }
    for (int k = 2; k <= chosen->degree; k += 2) {
      if (k == 2) {
        std::copy_n(square, size_, power);
      } else {
        multiply(power, square, next);
        std::swap(power, next);
      }
      const auto b_even = static_cast<Real<T>>(b[k]), b_odd = static_cast<Real<T>>(b[k + 1]);
      for (int64_t i = 0; i < size_; ++i) {
        even[i] += b_even * power[i];
        sum[i] += b_odd * power[i];
      }
    }
    multiply(x, sum, odd);
    for (int64_t i = 0; i < size_; ++i) {
      const T p = even[i] + odd[i];
      even[i] -= odd[i];
      odd[i] = p;
    }
    Int info = 0;
    lapack_.routines<T>().gesv(&n_, &n_, even, &n_, scratch.take<int64_t>(n_), odd, &n_, &info);
    T *result = odd, *other = next;
    for (; squarings > 0; --squarings) {
      multiply(result, result, other);
      std::swap(result, other);
    }
    if (result != to.data) std::copy_n(result, size_, to.data);
    return lapack_.read(info);
  }

 private:
  void multiply(const T* x, const T* y, T* to) const {
    const T one(1), zero(0);
    lapack_.routines<T>().gemm("N", "N", &n_, &n_, &n_, &one, x, &n_, y, &n_, &zero, to, &n_, 1, 1);
  }
  void set_identity(T* x) const {
    std::fill_n(x, size_, T{});
    for (int64_t i = 0; i < n_; ++i) x[i * n_ + i] = T(1);
  }
  Real<T> norm1(const T* x) const {
    Real<T> largest = 0;
    for (int64_t j = 0; j < n_; ++j) {
      Real<T> sum = 0;
      for (int64_t i = 0; i < n_; ++i) sum += std::abs(x[j * n_ + i]);
      if (!(sum <= largest)) largest = sum;
      if (std::isnan(sum)) return sum;
    }
    return largest;
  }

  const Library& lapack_;
  Int n_;
  int64_t size_;
};

tenon_status matrix_exp(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  const Library* lapack = library("matrix_exp", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  const tenon_status status = with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(x), to(out);
    if (x->numel == 0) return TENON_OK;
    const Exponential<T> exponential(*lapack, from.rows());
    return for_batch(ctx, from.count(), 20 * cube(from.rows()), exponential.bytes(), failure, err,
                     [&](int64_t index, Scratch scratch) {
                       return exponential.run(from[index], to[index], scratch);
                     });
  });
  return finish(status, "matrix_exp", failure, Batch<char>(x).leading(),
                "matrices whose exponential can be computed", "scale the matrix", err);
}
TENON_BOX_matrix_exp(matrix_exp_boxed, matrix_exp);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_matrix_exp(matrix_exp, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0)};

}  // namespace

KernelList exponential_kernels() { return kKernels; }

}  // namespace tenon::lapack
