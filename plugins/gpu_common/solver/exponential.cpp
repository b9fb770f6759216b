// SPDX-License-Identifier: Apache-2.0
// matrix_exp: scaling and squaring with a Padé approximant (Higham, The scaling and squaring method for the matrix
// exponential revisited, 2005). A matrix is divided by a power of two until its norm is below the bound within which the
// approximant is exact to rounding; the result is squared as often.
#include <cmath>
#include <limits>

#include "solver/factorizations.hpp"
#include "solver/lu.hpp"

namespace gpu::solver {
namespace {

struct Approximant {
  int degree;
  double bound;
  double coefficients[14];
};
constexpr Approximant kFloat = {
    7, 3.925724783138660, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}};
constexpr Approximant kDouble = {
    13,
    5.371920351148152,
    {64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000.,
     10559470521600., 670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182.,
     1.}};

// exp(x.T) is exp(x).T, so that rows may stand for columns; and all matrices are polynomials in x, which commute.
class Exponential {
 public:
  Exponential(const SolverCall& call, const Batch& from, void* out)
      : call_(call),
        from_(from),
        n_(static_cast<int>(from.rows())),
        count_(from.count()),
        size_(from.size()),
        out_(out),
        approximant_(real_of(call.dtype()) == TENON_DTYPE_F32 ? kFloat : kDouble) {}

  tenon_status run() {
    for (void** matrices : {&x_, &square_, &power_, &next_, &even_, &sum_})
      GPU_TRY(call_.elements(size_ * count_, matrices));
    GPU_TRY(call_.pack(from_, packed(x_)));
    GPU_TRY(scale());
    GPU_TRY(approximate());
    Pivots pivots;
    GPU_TRY(factor(call_, from_, packed(even_), n_, n_, &pivots));
    GPU_TRY(solve_factored(call_, from_, packed(even_), pivots, from_.leading(), count_,
                           packed(out_), n_, n_));
    GPU_TRY(square());
    for (int64_t index = 0; index < count_; ++index)
      if (!std::isfinite(norms_[static_cast<size_t>(index)]))
        GPU_TRY(call_.fill(call_.at(out_, index * size_), bytes(size_), 0xff));  // NaN
    return call_.check_infos(pivots.infos, from_, from_.leading(),
                             "matrices whose exponential can be computed", "scale the matrix");
  }

 private:
  Packed packed(void* memory) const { return by_rows(memory, n_, n_); }
  uint64_t bytes(int64_t elements) const {
    return static_cast<uint64_t>(elements) * host->dtype_size(call_.dtype());
  }

  // Matrices that are not finite become zeros, whose results are replaced at the end.
  tenon_status scale() {
    const auto count = static_cast<size_t>(count_);
    double* numbers = nullptr;
    norms_.resize(count);
    squarings_.resize(count);
    std::vector<double> factors(count);
    GPU_TRY(call_.scratch(count_, &numbers));
    GPU_TRY(call_.norms(call_.dtype(), x_, numbers, n_, count_));
    GPU_TRY(call_.read(norms_.data(), numbers, count * sizeof(double)));
    for (size_t i = 0; i < count; ++i) {
      if (!std::isfinite(norms_[i]))
        GPU_TRY(call_.fill(call_.at(x_, static_cast<int64_t>(i) * size_), bytes(size_), 0));
      else if (norms_[i] > approximant_.bound)
        squarings_[i] = static_cast<int>(std::ceil(std::log2(norms_[i] / approximant_.bound)));
      factors[i] = std::ldexp(1.0, -squarings_[i]);
    }
    GPU_TRY(call_.write(numbers, factors.data(), count * sizeof(double)));
    return call_.scale(call_.dtype(), x_, numbers, size_, count_);
  }

  // `out`: the numerator, `even`: the denominator; the sums of even and odd powers, and their difference.
  tenon_status approximate() {
    const int dtype = call_.dtype();
    const int64_t elements = size_ * count_;
    const double* b = approximant_.coefficients;
    GPU_TRY(multiply(x_, x_, square_));
    void* power = square_;
    void *unused = power_, *next = next_;
    for (void* matrices : {even_, sum_}) GPU_TRY(call_.fill(matrices, bytes(elements), 0));
    GPU_TRY(call_.add_diagonal(dtype, even_, b[0], n_, count_));
    GPU_TRY(call_.add_diagonal(dtype, sum_, b[1], n_, count_));
    for (int k = 2; k <= approximant_.degree; k += 2) {
      if (k > 2) {
        GPU_TRY(multiply(power, square_, next));
        power = next;
        std::swap(next, unused);
      }
      GPU_TRY(call_.add_scaled(dtype, even_, power, b[k], elements));
      GPU_TRY(call_.add_scaled(dtype, sum_, power, b[k + 1], elements));
    }
    GPU_TRY(multiply(x_, sum_, out_));
    CopyAxes all;
    all.add(elements, 1, 1);
    GPU_TRY(call_.copy(dtype, even_, next_, all));
    GPU_TRY(call_.add_scaled(dtype, even_, out_, -1, elements));
    return call_.add_scaled(dtype, out_, next_, 1, elements);
  }

  // Each matrix as often as it was halved, between `out` and `next`.
  tenon_status square() {
    const int most = *std::ranges::max_element(squarings_);
    for (int step = 0; step < most; ++step) {
      void *from = step % 2 ? next_ : out_, *to = step % 2 ? out_ : next_;
      if (std::ranges::all_of(squarings_, [&](int own) { return own == most; })) {
        GPU_TRY(multiply(from, from, to));
        continue;
      }
      GPU_TRY(call_.queue_each(count_, [&](Handles& handles, int64_t index) {
        return step < squarings_[static_cast<size_t>(index)]
                   ? product(handles, from, from, to, index, 1)
                   : 0;
      }));
    }
    for (int64_t index = 0; index < count_; ++index) {
      if (squarings_[static_cast<size_t>(index)] % 2 == 0) continue;
      CopyAxes all;
      all.add(size_, 1, 1);
      GPU_TRY(call_.copy(call_.dtype(), call_.at(next_, index * size_),
                         call_.at(out_, index * size_), all));
    }
    return TENON_OK;
  }

  tenon_status multiply(void* x, void* y, void* to) const {
    return call_.queue(
        [&](Handles& handles) { return product(handles, x, y, to, 0, static_cast<int>(count_)); });
  }
  Status product(Handles& handles, void* x, void* y, void* to, int64_t first, int batch) const {
    return call_.routines().gemm_batched(
        handles.blas, number::kNotTransposed, number::kNotTransposed, n_, n_, n_,
        number_of(call_.dtype(), 1), call_.at(x, first * size_), n_, size_,
        call_.at(y, first * size_), n_, size_, number_of(call_.dtype(), 0),
        call_.at(to, first * size_), n_, size_, batch);
  }

  const SolverCall& call_;
  const Batch& from_;
  const int n_;
  const int64_t count_, size_;
  void* const out_;
  const Approximant& approximant_;
  void *x_ = nullptr, *square_ = nullptr, *power_ = nullptr, *next_ = nullptr, *even_ = nullptr,
       *sum_ = nullptr;
  std::vector<double> norms_;
  std::vector<int> squarings_;
};

tenon_status matrix_exp(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs,
                        tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *out = tenon_out_tensor(&outs[0]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "matrix_exp", x->dtype, err);
  const Batch from(x);
  GPU_TRY(call.expect_int({from.rows(), from.count()}));
  return Exponential(call, from, out->data).run();
}

constexpr tenon_kernel_def kExponentialKernels[] = {
    definition("tenon::matrix_exp", boxed<matrix_exp>)};

}  // namespace

std::span<const tenon_kernel_def> exponential_kernels() { return kExponentialKernels; }

}  // namespace gpu::solver
