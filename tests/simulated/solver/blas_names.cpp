// SPDX-License-Identifier: Apache-2.0
// The functions of cuBLAS and hipBLAS for triangular systems and batches of factorizations. Sizes, leading dimensions and
// addresses are checked, and what does not fit is refused.
//
// Sources: the cuBLAS reference (13.0) and the hipBLAS API reference (2.4).
#include "call.hpp"

using namespace simulated;

namespace {

#if SIMULATED_HIP
enum Status { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 3, kFailed = 5 };
enum Number {
  kUpper = 121,
  kLower = 122,
  kNone = 111,
  kLeft = 141,
  kRight = 142,
  kNonUnit = 131,
  kUnit = 132
};
#else
enum Status { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kFailed = 13 };
enum Number { kUpper = 1, kLower = 0, kNone = 0, kLeft = 0, kRight = 1, kNonUnit = 0, kUnit = 1 };
#endif

#define BEGIN(name)                                \
  if (int error = count_call(#name)) return error; \
  const SolverUse use(handle);                     \
  if (!use) return kNotInitialized
#define EXPECT(condition) \
  if (!(condition)) return kInvalidValue

template <class Work>
int queue(const SolverUse& use, Work work) {
  return enqueue(use.stream, std::move(work)) ? kSuccess : kFailed;
}

// op(a) @ x == alpha * b, or x @ op(a), without a transposition.
template <class T>
struct Triangular {
  int side, uplo, trans, diagonal, m, n;
  T alpha;
  int lda, ldb;

  int extent() const { return side == kLeft ? m : n; }
  bool is_known() const {
    return (side == kLeft || side == kRight) && (uplo == kUpper || uplo == kLower) &&
           trans == kNone && (diagonal == kUnit || diagonal == kNonUnit) && fits(m, n, ldb) &&
           fits(extent(), extent(), lda);
  }
  void run(const T* a, T* b) const {
    const T* triangle = matrix_on_device(a, extent(), extent(), lda);
    T* sides = matrix_on_device(b, m, n, ldb);
    if (!triangle || !sides) return;
    auto x = load(sides, m, n, ldb);
    for (auto& each : x.data) each *= static_cast<Wide<T>>(alpha);
    solve_triangular(load(triangle, extent(), extent(), lda), x, side == kLeft, uplo == kLower,
                     diagonal == kUnit);
    store(x, sides, ldb);
  }
};

template <class T>
int trsm(void* handle, const Triangular<T>& system, const T* a, T* b) {
  BEGIN(BlasTrsm);
  EXPECT(system.is_known() && matrix_on_device(a, system.extent(), system.extent(), system.lda) &&
         matrix_on_device(b, system.m, system.n, system.ldb));
  return queue(use, [=] { system.run(a, b); });
}

template <class T>
int trsm_batched(void* handle, const Triangular<T>& system, const T* const* a, T* const* b,
                 int batch) {
  BEGIN(BlasTrsmBatched);
  const auto count = static_cast<size_t>(batch);
  EXPECT(system.is_known() && batch >= 1 && on_device(a, count) && on_device(b, count));
  return queue(use, [=] {
    const T* const* from = on_device(a, count);
    T* const* sides = on_device(b, count);
    for (size_t i = 0; from && sides && i < count; ++i) system.run(from[i], sides[i]);
  });
}

template <class T>
struct Product {
  int trans_a, trans_b, m, n, k;
  const T* alpha;
  const T* a;
  int lda;
  long long a_pitch;
  const T* b;
  int ldb;
  long long b_pitch;
  const T* beta;
  T* c;
  int ldc;
  long long c_pitch;
  int batch;

  bool is_known() const {
    return trans_a == kNone && trans_b == kNone && fits(m, k, lda) && fits(k, n, ldb) &&
           fits(m, n, ldc) && alpha && beta && *alpha == T(1) && *beta == T(0) && batch >= 1 &&
           a_pitch >= 0 && b_pitch >= 0 &&
           (batch == 1 || c_pitch >= static_cast<long long>(ldc) * n);
  }
  bool is_on_device() const {
    const long long last = batch - 1;
    return matrix_on_device(a, m, k, lda) && matrix_on_device(a + last * a_pitch, m, k, lda) &&
           matrix_on_device(b, k, n, ldb) && matrix_on_device(b + last * b_pitch, k, n, ldb) &&
           matrix_on_device(c, m, n, ldc) && matrix_on_device(c + last * c_pitch, m, n, ldc);
  }
  void run() const {
    for (long long i = 0; i < batch; ++i) {
      const T *left = matrix_on_device(a + i * a_pitch, m, k, lda),
              *right = matrix_on_device(b + i * b_pitch, k, n, ldb);
      T* to = matrix_on_device(c + i * c_pitch, m, n, ldc);
      if (!left || !right || !to) continue;
      const auto x = load(left, m, k, lda), y = load(right, k, n, ldb);
      Dense<Wide<T>> z(m, n);
      for (int column = 0; column < n; ++column)
        for (int row = 0; row < m; ++row)
          for (int j = 0; j < k; ++j) z(row, column) += x(row, j) * y(j, column);
      store(z, to, ldc);
    }
  }
};

template <class T>
int gemm_batched(void* handle, const Product<T>& product) {
  BEGIN(BlasGemmBatched);
  EXPECT(product.is_known() && product.is_on_device());
  return queue(use, [=] { product.run(); });
}

template <class T>
int getrf_batched(void* handle, int n, T* const* a, int lda, int* pivots, int* infos, int batch) {
  BEGIN(BlasGetrfBatched);
  const auto count = static_cast<size_t>(batch), extent = static_cast<size_t>(n);
  EXPECT(fits(n, n, lda) && batch >= 1 && on_device(a, count) &&
         on_device(pivots, count * extent) && on_device(infos, count));
  return queue(use, [=] {
    T* const* matrices = on_device(a, count);
    int *rows = on_device(pivots, count * extent), *found = on_device(infos, count);
    for (size_t i = 0; matrices && rows && found && i < count; ++i) {
      T* memory = matrix_on_device(matrices[i], n, n, lda);
      if (!memory) continue;
      auto x = load(memory, n, n, lda);
      found[i] = factor_lu(x, rows + i * extent);
      store(x, memory, lda);
    }
  });
}

template <class T>
int geqrf_batched(void* handle, int m, int n, T* const* a, int lda, T* const* tau, int* info,
                  int batch) {
  BEGIN(BlasGeqrfBatched);
  const auto count = static_cast<size_t>(batch), k = static_cast<size_t>(std::min(m, n));
  EXPECT(info && !on_device(info, 1));
  *info = fits(m, n, lda) ? 0 : -4;
  EXPECT(*info == 0 && batch >= 1 && on_device(a, count) && on_device(tau, count));
  return queue(use, [=] {
    T *const *matrices = on_device(a, count), *const *scales = on_device(tau, count);
    for (size_t i = 0; matrices && scales && i < count; ++i) {
      T *memory = matrix_on_device(matrices[i], m, n, lda), *to = on_device(scales[i], k);
      if (!memory || !to) continue;
      auto x = load(memory, m, n, lda);
      std::vector<Wide<T>> factors;
      reflect(x, factors);
      store(x, memory, lda);
      for (size_t j = 0; j < k; ++j) to[j] = static_cast<T>(factors[j]);
    }
  });
}

template <class T>
int getrs_batched(void* handle, int trans, int n, int columns, T* const* a, int lda,
                  const int* pivots, T* const* b, int ldb, int* info, int batch) {
  BEGIN(BlasGetrsBatched);
  const auto count = static_cast<size_t>(batch), extent = static_cast<size_t>(n);
  // Unlike all others this number is the host's.
  EXPECT(info && !on_device(info, 1));
  *info = fits(n, n, lda) && fits(n, columns, ldb) ? 0 : -3;
  EXPECT(*info == 0 && trans == kNone && batch >= 1 && on_device(a, count) &&
         on_device(pivots, count * extent) && on_device(b, count));
  return queue(use, [=] {
    T *const *factors = on_device(a, count), *const *sides = on_device(b, count);
    const int* rows = on_device(pivots, count * extent);
    for (size_t i = 0; factors && sides && rows && i < count; ++i) {
      const T* lu = matrix_on_device(factors[i], n, n, lda);
      T* memory = matrix_on_device(sides[i], n, columns, ldb);
      if (!lu || !memory) continue;
      auto x = load(memory, n, columns, ldb);
      solve_lu(load(lu, n, n, lda), rows + i * extent, x);
      store(x, memory, ldb);
    }
  });
}

int create(void** out) {
  if (int error = count_call("BlasCreate")) return error;
  if (current_device() < 0) return kNotInitialized;
  return solver_handles.add(out, {.device = current_device()}) ? kSuccess : kInvalidValue;
}
int destroy(void* handle) { return solver_handles.drop(handle) ? kSuccess : kNotInitialized; }
int set_stream(void* handle, void* stream) {
  const SolverUse use(handle);
  if (!use) return kNotInitialized;
  solver_handles.change(handle, [&](SolverHandle& each) { each.stream = stream; });
  return kSuccess;
}

}  // namespace

#if SIMULATED_HIP
#define FULL(letter, name) hipblas##letter##name
#define TRSM(letter) hipblas##letter##trsm
EXPORT int hipblasCreate(void** out) { return create(out); }
EXPORT int hipblasDestroy(void* handle) { return destroy(handle); }
EXPORT int hipblasSetStream(void* handle, void* stream) { return set_stream(handle, stream); }
#else
#define FULL(letter, name) cublas##letter##name
#define TRSM(letter) cublas##letter##trsm_v2
EXPORT int cublasCreate_v2(void** out) { return create(out); }
EXPORT int cublasDestroy_v2(void* handle) { return destroy(handle); }
EXPORT int cublasSetStream_v2(void* handle, void* stream) { return set_stream(handle, stream); }
#endif

#define ROUTINES(letter, T)                                                                        \
  EXPORT int TRSM(letter)(void* handle, int side, int uplo, int trans, int diagonal, int m, int n, \
                          const T* alpha, const T* a, int lda, T* b, int ldb) {                    \
    if (!alpha) return kInvalidValue;                                                              \
    return trsm<T>(handle, {side, uplo, trans, diagonal, m, n, *alpha, lda, ldb}, a, b);           \
  }                                                                                                \
  EXPORT int FULL(letter, trsmBatched)(void* handle, int side, int uplo, int trans, int diagonal,  \
                                       int m, int n, const T* alpha, const T* const* a, int lda,   \
                                       T* const* b, int ldb, int batch) {                          \
    if (!alpha) return kInvalidValue;                                                              \
    return trsm_batched<T>(handle, {side, uplo, trans, diagonal, m, n, *alpha, lda, ldb}, a, b,    \
                           batch);                                                                 \
  }                                                                                                \
  EXPORT int FULL(letter, gemmStridedBatched)(                                                     \
      void* handle, int trans_a, int trans_b, int m, int n, int k, const T* alpha, const T* a,     \
      int lda, long long a_pitch, const T* b, int ldb, long long b_pitch, const T* beta, T* c,     \
      int ldc, long long c_pitch, int batch) {                                                     \
    return gemm_batched<T>(handle, {trans_a, trans_b, m, n, k, alpha, a, lda, a_pitch, b, ldb,     \
                                    b_pitch, beta, c, ldc, c_pitch, batch});                       \
  }                                                                                                \
  EXPORT int FULL(letter, getrfBatched)(void* handle, int n, T* const* a, int lda, int* pivots,    \
                                        int* infos, int batch) {                                   \
    return getrf_batched(handle, n, a, lda, pivots, infos, batch);                                 \
  }                                                                                                \
  EXPORT int FULL(letter, geqrfBatched)(void* handle, int m, int n, T* const* a, int lda,          \
                                        T* const* tau, int* info, int batch) {                     \
    return geqrf_batched(handle, m, n, a, lda, tau, info, batch);                                  \
  }                                                                                                \
  EXPORT int FULL(letter, getrsBatched)(void* handle, int trans, int n, int columns, T* const* a,  \
                                        int lda, const int* pivots, T* const* b, int ldb,          \
                                        int* info, int batch) {                                    \
    return getrs_batched(handle, trans, n, columns, a, lda, pivots, b, ldb, info, batch);          \
  }
ROUTINES(S, float)
ROUTINES(D, double)
ROUTINES(C, std::complex<float>)
ROUTINES(Z, std::complex<double>)
