// SPDX-License-Identifier: Apache-2.0
// The functions of cuSOLVER, and those of hipSOLVER that have their parameters. Sizes, leading dimensions, workspaces and
// addresses are checked, and what does not fit is refused.
//
// Sources: the cuSOLVER reference (13.0) and the hipSOLVER API reference (2.4).
#include "call.hpp"

using namespace simulated;

namespace {

#if SIMULATED_HIP
#define NAME(name) hipsolverDn##name
enum Status { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 3, kFailed = 5 };
enum Number { kUpper = 121, kLower = 122, kNone = 111, kValues = 201, kVectors = 202 };
#else
#define NAME(name) cusolverDn##name
enum Status { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 3, kFailed = 6 };
enum Number { kUpper = 1, kLower = 0, kNone = 0, kValues = 0, kVectors = 1 };
#endif

bool is_triangle(int uplo) { return uplo == kUpper || uplo == kLower; }
bool is_job(int job) { return job == kValues || job == kVectors; }

// cuSOLVER counts elements, hipSOLVER bytes.
template <class T>
int size_of_work(int m, int n) {
  const int elements = m * n + 2 * (m + n) + 7;
  return SIMULATED_HIP ? elements * static_cast<int>(sizeof(T)) : elements;
}
template <class T>
size_t elements_of(int size) {
  return static_cast<size_t>(SIMULATED_HIP ? size / static_cast<int>(sizeof(T)) : size);
}
template <class T>
bool is_work(const T* work, int size, int m, int n) {
  return size >= size_of_work<T>(m, n) && on_device(work, elements_of<T>(size));
}

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

template <class T>
int size_of(void* handle, int m, int n, const void* a, int lda, int* size) {
  BEGIN(SolverBufferSize);
  EXPECT(fits(m, n, lda) && size && matrix_on_device(static_cast<const T*>(a), m, n, lda));
  *size = size_of_work<T>(m, n);
  return kSuccess;
}

template <class T>
void run_potrf(T* a, int n, int lda, bool lower, int* info) {
  T* memory = matrix_on_device(a, n, n, lda);
  int* found = on_device(info, 1);
  if (!memory || !found) return;
  auto x = load(memory, n, n, lda);
  *found = cholesky(x, lower);
  store(x, memory, lda);
}

template <class T>
int potrf(void* handle, int uplo, int n, T* a, int lda, T* work, int size, int* info) {
  BEGIN(SolverPotrf);
  EXPECT(is_triangle(uplo) && fits(n, n, lda) && matrix_on_device(a, n, n, lda) &&
         is_work(work, size, n, n) && on_device(info, 1));
  return queue(use, [=] {
    spoil(work, elements_of<T>(size));
    run_potrf(a, n, lda, uplo == kLower, info);
  });
}

template <class T>
int potrf_batched(void* handle, int uplo, int n, T* const* a, int lda, int* infos, int batch) {
  BEGIN(SolverPotrfBatched);
  EXPECT(is_triangle(uplo) && fits(n, n, lda) && batch >= 1);
  EXPECT(on_device(a, static_cast<size_t>(batch)) && on_device(infos, static_cast<size_t>(batch)));
  return queue(use, [=] {
    T* const* matrices = on_device(a, static_cast<size_t>(batch));
    for (int i = 0; matrices && i < batch; ++i)
      run_potrf(matrices[i], n, lda, uplo == kLower, infos + i);
  });
}

template <class T>
int getrf(void* handle, int m, int n, T* a, int lda, T* work, int* pivots, int* info) {
  BEGIN(SolverGetrf);
  const auto room = static_cast<size_t>(m * n + 2 * (m + n) + 7);
  EXPECT(fits(m, n, lda) && matrix_on_device(a, m, n, lda) && on_device(work, room) &&
         on_device(pivots, static_cast<size_t>(std::min(m, n))) && on_device(info, 1));
  return queue(use, [=] {
    spoil(work, room);
    T* memory = matrix_on_device(a, m, n, lda);
    int *rows = on_device(pivots, static_cast<size_t>(std::min(m, n))), *found = on_device(info, 1);
    if (!memory || !rows || !found) return;
    auto x = load(memory, m, n, lda);
    *found = factor_lu(x, rows);
    store(x, memory, lda);
  });
}

template <class T>
int getrs(void* handle, int trans, int n, int columns, const T* a, int lda, const int* pivots, T* b,
          int ldb, int* info) {
  BEGIN(SolverGetrs);
  EXPECT(trans == kNone && fits(n, n, lda) && fits(n, columns, ldb) &&
         matrix_on_device(a, n, n, lda) && on_device(pivots, static_cast<size_t>(n)) &&
         matrix_on_device(b, n, columns, ldb) && on_device(info, 1));
  return queue(use, [=] {
    const T* factors = matrix_on_device(a, n, n, lda);
    const int* rows = on_device(pivots, static_cast<size_t>(n));
    T* sides = matrix_on_device(b, n, columns, ldb);
    int* found = on_device(info, 1);
    if (!factors || !rows || !sides || !found) return;
    auto x = load(sides, n, columns, ldb);
    solve_lu(load(factors, n, n, lda), rows, x);
    store(x, sides, ldb);
    *found = 0;
  });
}

template <class T>
int geqrf(void* handle, int m, int n, T* a, int lda, T* tau, T* work, int size, int* info) {
  BEGIN(SolverGeqrf);
  const auto k = static_cast<size_t>(std::min(m, n));
  EXPECT(fits(m, n, lda) && matrix_on_device(a, m, n, lda) && on_device(tau, k) &&
         is_work(work, size, m, n) && on_device(info, 1));
  return queue(use, [=] {
    spoil(work, elements_of<T>(size));
    T *memory = matrix_on_device(a, m, n, lda), *scales = on_device(tau, k);
    int* found = on_device(info, 1);
    if (!memory || !scales || !found) return;
    auto x = load(memory, m, n, lda);
    std::vector<Wide<T>> factors;
    reflect(x, factors);
    store(x, memory, lda);
    for (size_t i = 0; i < k; ++i) scales[i] = static_cast<T>(factors[i]);
    *found = 0;
  });
}

template <class T>
int orgqr_size(void* handle, int m, int n, int k, const T* a, int lda, const T* tau, int* size) {
  BEGIN(SolverBufferSize);
  EXPECT(fits(m, n, lda) && n <= m && k >= 1 && k <= n && size && matrix_on_device(a, m, n, lda) &&
         on_device(tau, static_cast<size_t>(k)));
  *size = size_of_work<T>(m, n);
  return kSuccess;
}

template <class T>
int orgqr(void* handle, int m, int n, int k, T* a, int lda, const T* tau, T* work, int size,
          int* info) {
  BEGIN(SolverOrgqr);
  EXPECT(fits(m, n, lda) && n <= m && k >= 1 && k <= n && matrix_on_device(a, m, n, lda) &&
         on_device(tau, static_cast<size_t>(k)) && is_work(work, size, m, n) && on_device(info, 1));
  return queue(use, [=] {
    spoil(work, elements_of<T>(size));
    T* memory = matrix_on_device(a, m, n, lda);
    const T* scales = on_device(tau, static_cast<size_t>(k));
    int* found = on_device(info, 1);
    if (!memory || !scales || !found) return;
    auto x = load(memory, m, n, lda);
    std::vector<Wide<T>> factors;
    for (int i = 0; i < k; ++i) factors.push_back(static_cast<Wide<T>>(scales[i]));
    multiply_reflections(x, factors);
    store(x, memory, lda);
    *found = 0;
  });
}

template <class T>
int syevd_size(void* handle, int job, int uplo, int n, const T* a, int lda, const RealPart<T>* w,
               int* size) {
  BEGIN(SolverBufferSize);
  EXPECT(is_job(job) && is_triangle(uplo) && fits(n, n, lda) && size &&
         matrix_on_device(a, n, n, lda) && on_device(w, static_cast<size_t>(n)));
  *size = size_of_work<T>(n, n);
  return kSuccess;
}

template <class T>
int syevd(void* handle, int job, int uplo, int n, T* a, int lda, RealPart<T>* w, T* work, int size,
          int* info) {
  BEGIN(SolverSyevd);
  EXPECT(is_job(job) && is_triangle(uplo) && fits(n, n, lda) && matrix_on_device(a, n, n, lda) &&
         on_device(w, static_cast<size_t>(n)) && is_work(work, size, n, n) && on_device(info, 1));
  return queue(use, [=] {
    spoil(work, elements_of<T>(size));
    T* memory = matrix_on_device(a, n, n, lda);
    RealPart<T>* values = on_device(w, static_cast<size_t>(n));
    int* found = on_device(info, 1);
    if (!memory || !values || !found) return;
    auto x = load(memory, n, n, lda);
    std::vector<double> own;
    *found = eigenvalues(x, uplo == kLower, own);
    for (size_t i = 0; i < own.size(); ++i) values[i] = static_cast<RealPart<T>>(own[i]);
    if (job == kVectors)
      store(x, memory, lda);
    else  // nothing is said of what is left of the matrix
      spoil(a, static_cast<size_t>(n));
  });
}

constexpr int kMaxJacobiExtent = 32;
Objects<int> options_of_syevj, options_of_gesvdj;
bool is_known(const Objects<int>& options, void* handle) {
  int unused;
  return options.find(handle, &unused);
}

template <class T>
int syevj_batched_size(void* handle, int job, int uplo, int n, const T* a, int lda,
                       const RealPart<T>* w, int* size, void* options, int batch) {
  BEGIN(SolverBufferSize);
  EXPECT(is_job(job) && is_triangle(uplo) && batch >= 1 && lda == n && n >= 1 && size &&
         n <= kMaxJacobiExtent && is_known(options_of_syevj, options));
  EXPECT(matrix_on_device(a, n, n * batch, n) && on_device(w, static_cast<size_t>(n * batch)));
  *size = size_of_work<T>(n, n * batch);
  return kSuccess;
}

template <class T>
int syevj_batched(void* handle, int job, int uplo, int n, T* a, int lda, RealPart<T>* w, T* work,
                  int size, int* infos, void* options, int batch) {
  BEGIN(SolverSyevjBatched);
  EXPECT(is_job(job) && is_triangle(uplo) && batch >= 1 && lda == n && n >= 1 &&
         n <= kMaxJacobiExtent && is_known(options_of_syevj, options));
  const auto matrix = static_cast<size_t>(n * n), count = static_cast<size_t>(batch);
  EXPECT(on_device(a, matrix * count) && on_device(w, static_cast<size_t>(n) * count) &&
         is_work(work, size, n, n * batch) && on_device(infos, count));
  return queue(use, [=] {
    spoil(work, elements_of<T>(size));
    T* memory = on_device(a, matrix * count);
    RealPart<T>* values = on_device(w, static_cast<size_t>(n) * count);
    int* found = on_device(infos, count);
    for (size_t i = 0; memory && values && found && i < count; ++i) {
      auto x = load(memory + i * matrix, n, n, n);
      std::vector<double> own;
      found[i] = eigenvalues(x, uplo == kLower, own);
      for (double each : own) *values++ = static_cast<RealPart<T>>(each);
      if (job == kVectors)
        store(x, memory + i * matrix, n);
      else
        spoil(a + i * matrix, matrix);
    }
  });
}

template <class W>
Dense<W> adjoint(const Dense<W>& x) {
  Dense<W> result(x.columns, x.rows);
  for (int i = 0; i < x.rows; ++i)
    for (int j = 0; j < x.columns; ++j) result(j, i) = conjugate(x(i, j));
  return result;
}

// What square u and v the batches get: the adjoint of a wide matrix is a high one.
template <class W>
int square_factors(const Dense<W>& x, std::vector<double>& s, Dense<W>& u, Dense<W>& v) {
  if (x.rows < x.columns) return square_factors(adjoint(x), s, v, u);
  Dense<W> vh(1, 1);
  const int info = singular_values(x, s, x.rows, u, vh);
  v = adjoint(vh);
  return info;
}

template <class T>
bool is_jacobi_problem(int job, int m, int n, const T* a, int lda, const RealPart<T>* s, const T* u,
                       int ldu, const T* v, int ldv, void* options, int batch) {
  const auto count = static_cast<size_t>(batch), rows = static_cast<size_t>(m),
             columns = static_cast<size_t>(n);
  return is_job(job) && m >= 1 && n >= 1 && std::max(m, n) <= kMaxJacobiExtent && lda == m &&
         ldu == m && ldv == n && batch >= 1 && is_known(options_of_gesvdj, options) &&
         on_device(a, rows * columns * count) && on_device(s, std::min(rows, columns) * count) &&
         (job == kValues ||
          (on_device(u, rows * rows * count) && on_device(v, columns * columns * count)));
}

template <class T>
int gesvdj_batched_size(void* handle, int job, int m, int n, const T* a, int lda,
                        const RealPart<T>* s, const T* u, int ldu, const T* v, int ldv, int* size,
                        void* options, int batch) {
  BEGIN(SolverBufferSize);
  EXPECT(is_jacobi_problem(job, m, n, a, lda, s, u, ldu, v, ldv, options, batch) && size);
  *size = size_of_work<T>(m, n * batch);
  return kSuccess;
}

template <class T>
int gesvdj_batched(void* handle, int job, int m, int n, T* a, int lda, RealPart<T>* s, T* u,
                   int ldu, T* v, int ldv, T* work, int size, int* infos, void* options,
                   int batch) {
  BEGIN(SolverGesvdjBatched);
  const auto count = static_cast<size_t>(batch), rows = static_cast<size_t>(m),
             columns = static_cast<size_t>(n);
  EXPECT(is_jacobi_problem<T>(job, m, n, a, lda, s, u, ldu, v, ldv, options, batch) &&
         is_work(work, size, m, n * batch) && on_device(infos, count));
  return queue(use, [=] {
    spoil(work, elements_of<T>(size));
    const T* memory = on_device(a, rows * columns * count);
    RealPart<T>* values = on_device(s, std::min(rows, columns) * count);
    T *left = on_device(u, rows * rows * count), *right = on_device(v, columns * columns * count);
    int* found = on_device(infos, count);
    for (size_t i = 0; memory && values && found && i < count; ++i) {
      std::vector<double> own;
      Dense<Wide<T>> to_left(1, 1), to_right(1, 1);
      found[i] = square_factors(load(memory + i * rows * columns, m, n, m), own, to_left, to_right);
      for (double each : own) *values++ = static_cast<RealPart<T>>(each);
      if (job == kValues || !left || !right) continue;
      store(to_left, left + i * rows * rows, m);
      store(to_right, right + i * columns * columns, n);
    }
    spoil(a, rows * columns * count);
  });
}

// cudaDataType, hipDataType: all matrices are complex, of one type.
enum Type { kComplex32 = 4, kComplex64 = 5 };
Objects<int> options_of_geev;
constexpr size_t kGeevHostBytes = 64;

struct GeneralProblem {
  void* options;
  int job_left, job_right;
  int64_t n;
  int types
      [5];  // of the matrix, the values, the vectors of the left and the right, and of what is computed in
  void* a;
  int64_t lda;
  void *w, *right;
  int64_t ld_left, ld_right;

  size_t device_bytes() const { return static_cast<size_t>(n * n) * 16 + 256; }
  template <class T>
  bool is_on_device() const {
    const int extent = static_cast<int>(n);
    return matrix_on_device(static_cast<T*>(a), extent, extent, static_cast<int>(lda)) &&
           on_device(static_cast<T*>(w), static_cast<size_t>(n)) &&
           (job_right == kValues ||
            matrix_on_device(static_cast<T*>(right), extent, extent, static_cast<int>(ld_right)));
  }
  bool is_sound() const {
    for (int type : types)
      if (type != types[0]) return false;
    if (types[0] != kComplex32 && types[0] != kComplex64) return false;
    return is_known(options_of_geev, options) && job_left == kValues && is_job(job_right) &&
           n >= 1 && lda >= n && ld_left >= 1 && ld_right >= n &&
           (types[0] == kComplex32 ? is_on_device<std::complex<float>>()
                                   : is_on_device<std::complex<double>>());
  }
  template <class T>
  void run(int* info) const {
    const int extent = static_cast<int>(n);
    T* memory = matrix_on_device(static_cast<T*>(a), extent, extent, static_cast<int>(lda));
    T* values = on_device(static_cast<T*>(w), static_cast<size_t>(n));
    int* found = on_device(info, 1);
    if (!memory || !values || !found) return;
    std::vector<std::complex<double>> own;
    Dense<std::complex<double>> vectors(1, 1);
    *found = general_eigenvalues(load(memory, extent, extent, static_cast<int>(lda)), own, vectors);
    for (size_t i = 0; i < own.size(); ++i) values[i] = static_cast<T>(own[i]);
    if (job_right == kVectors)
      if (T* to =
              matrix_on_device(static_cast<T*>(right), extent, extent, static_cast<int>(ld_right)))
        store(vectors, to, static_cast<int>(ld_right));
    spoil(static_cast<T*>(a), static_cast<size_t>(n));
  }
};

template <class T>
int gesvd_size(void* handle, int m, int n, int* size) {
  BEGIN(SolverBufferSize);
  EXPECT(n >= 1 && m >= n && size);  // "gesvd only supports m >= n"
  *size = size_of_work<T>(m, n);
  return kSuccess;
}

template <class T>
int gesvd(void* handle, signed char job_u, signed char job_vt, int m, int n, T* a, int lda,
          RealPart<T>* s, T* u, int ldu, T* vt, int ldvt, T* work, int size, RealPart<T>* real_work,
          int* info) {
  BEGIN(SolverGesvd);
  EXPECT(n >= 1 && m >= n && fits(m, n, lda) && matrix_on_device(a, m, n, lda));
  EXPECT(job_u == job_vt && (job_u == 'A' || job_u == 'S' || job_u == 'N'));
  const int columns = job_u == 'A' ? m : n;
  EXPECT(on_device(s, static_cast<size_t>(n)) && is_work(work, size, m, n) && on_device(info, 1) &&
         (n == 1 || on_device(real_work, static_cast<size_t>(n - 1))));
  EXPECT(ldu >= m && ldvt >= n);
  EXPECT(job_u == 'N' ||
         (matrix_on_device(u, m, columns, ldu) && matrix_on_device(vt, n, n, ldvt)));
  return queue(use, [=] {
    spoil(work, elements_of<T>(size));
    T* memory = matrix_on_device(a, m, n, lda);
    RealPart<T>* values = on_device(s, static_cast<size_t>(n));
    int* found = on_device(info, 1);
    if (!memory || !values || !found) return;
    std::vector<double> own;
    Dense<Wide<T>> left(1, 1), right(1, 1);
    *found = singular_values(load(memory, m, n, lda), own, columns, left, right);
    for (size_t i = 0; i < own.size(); ++i) values[i] = static_cast<RealPart<T>>(own[i]);
    spoil(a, static_cast<size_t>(m));
    if (job_u == 'N') return;
    T *to_left = matrix_on_device(u, m, columns, ldu), *to_right = matrix_on_device(vt, n, n, ldvt);
    if (!to_left || !to_right) return;
    store(left, to_left, ldu);
    store(right, to_right, ldvt);
  });
}

template <class T>
int sytrf(void* handle, int uplo, int n, T* a, int lda, int* pivots, T* work, int size, int* info) {
  BEGIN(SolverSytrf);
  EXPECT(uplo == kLower && fits(n, n, lda) && matrix_on_device(a, n, n, lda) &&
         on_device(pivots, static_cast<size_t>(n)) && is_work(work, size, n, n) &&
         on_device(info, 1));
  return queue(use, [=] {
    spoil(work, elements_of<T>(size));
    T* memory = matrix_on_device(a, n, n, lda);
    int *rows = on_device(pivots, static_cast<size_t>(n)), *found = on_device(info, 1);
    if (!memory || !rows || !found) return;
    auto x = load(memory, n, n, lda);
    *found = factor_ldl(x, rows);
    store(x, memory, lda);
  });
}

}  // namespace

EXPORT int NAME(Create)(void** out) {
  if (int error = count_call("SolverCreate")) return error;
  if (current_device() < 0) return kNotInitialized;
  return solver_handles.add(out, {.device = current_device()}) ? kSuccess : kInvalidValue;
}
EXPORT int NAME(Destroy)(void* handle) {
  return solver_handles.drop(handle) ? kSuccess : kNotInitialized;
}
EXPORT int NAME(CreateSyevjInfo)(void** out) {
  return options_of_syevj.add(out) ? kSuccess : kInvalidValue;
}
EXPORT int NAME(DestroySyevjInfo)(void* options) {
  return options_of_syevj.drop(options) ? kSuccess : kInvalidValue;
}
EXPORT int NAME(CreateGesvdjInfo)(void** out) {
  return options_of_gesvdj.add(out) ? kSuccess : kInvalidValue;
}
EXPORT int NAME(DestroyGesvdjInfo)(void* options) {
  return options_of_gesvdj.drop(options) ? kSuccess : kInvalidValue;
}
EXPORT int NAME(CreateParams)(void** out) {
  return options_of_geev.add(out) ? kSuccess : kInvalidValue;
}
EXPORT int NAME(DestroyParams)(void* options) {
  return options_of_geev.drop(options) ? kSuccess : kInvalidValue;
}
EXPORT int NAME(Xgeev_bufferSize)(void* handle, void* options, int job_left, int job_right,
                                  int64_t n, int type, void* a, int64_t lda, int w_type, void* w,
                                  int left_type, void*, int64_t ld_left, int right_type,
                                  void* right, int64_t ld_right, int compute_type,
                                  size_t* device_bytes, size_t* host_bytes) {
  BEGIN(SolverBufferSize);
  const GeneralProblem problem = {
      options, job_left, job_right, n,     {type, w_type, left_type, right_type, compute_type},
      a,       lda,      w,         right, ld_left,
      ld_right};
  EXPECT(problem.is_sound() && device_bytes && host_bytes);
  *device_bytes = problem.device_bytes();
  *host_bytes = kGeevHostBytes;
  return kSuccess;
}
EXPORT int NAME(Xgeev)(void* handle, void* options, int job_left, int job_right, int64_t n,
                       int type, void* a, int64_t lda, int w_type, void* w, int left_type, void*,
                       int64_t ld_left, int right_type, void* right, int64_t ld_right,
                       int compute_type, void* device_work, size_t device_bytes, void* host_work,
                       size_t host_bytes, int* info) {
  BEGIN(SolverGeev);
  const GeneralProblem problem = {
      options, job_left, job_right, n,     {type, w_type, left_type, right_type, compute_type},
      a,       lda,      w,         right, ld_left,
      ld_right};
  EXPECT(problem.is_sound() && device_bytes >= problem.device_bytes() && on_device(info, 1));
  EXPECT(on_device(static_cast<char*>(device_work), device_bytes));
  EXPECT(host_work && host_bytes >= kGeevHostBytes && !on_device(static_cast<char*>(host_work), 1));
  // The work on the host goes on behind the call, in memory that has to stay until it has ended.
  return queue(use, [=] {
    spoil(static_cast<char*>(device_work), device_bytes);
    std::memset(host_work, 0xff, host_bytes);
    type == kComplex32 ? problem.run<std::complex<float>>(info)
                       : problem.run<std::complex<double>>(info);
  });
}
EXPORT int NAME(SetStream)(void* handle, void* stream) {
  const SolverUse use(handle);
  if (!use) return kNotInitialized;
  solver_handles.change(handle, [&](SolverHandle& each) { each.stream = stream; });
  return kSuccess;
}

#if SIMULATED_HIP
#define FULL(letter, name) hipsolverDn##letter##name
#else
#define FULL(letter, name) cusolverDn##letter##name
#endif

#define ROUTINES(letter, T, orgqr_name, orgqr_size_name, syevd_name, syevd_size_name, syevj_name,  \
                 syevj_size_name)                                                                  \
  EXPORT int FULL(letter, potrf_bufferSize)(void* handle, int uplo, int n, T* a, int lda,          \
                                            int* size) {                                           \
    return is_triangle(uplo) ? size_of<T>(handle, n, n, a, lda, size) : int{kInvalidValue};        \
  }                                                                                                \
  EXPORT int FULL(letter, potrf)(void* handle, int uplo, int n, T* a, int lda, T* work, int size,  \
                                 int* info) {                                                      \
    return potrf(handle, uplo, n, a, lda, work, size, info);                                       \
  }                                                                                                \
  EXPORT int FULL(letter, potrfBatched)(void* handle, int uplo, int n, T** a, int lda, int* infos, \
                                        int batch) {                                               \
    return potrf_batched(handle, uplo, n, a, lda, infos, batch);                                   \
  }                                                                                                \
  EXPORT int FULL(letter, getrf_bufferSize)(void* handle, int m, int n, T* a, int lda,             \
                                            int* size) {                                           \
    return size_of<T>(handle, m, n, a, lda, size);                                                 \
  }                                                                                                \
  EXPORT int FULL(letter, getrf)(void* handle, int m, int n, T* a, int lda, T* work, int* pivots,  \
                                 int* info) {                                                      \
    return getrf(handle, m, n, a, lda, work, pivots, info);                                        \
  }                                                                                                \
  EXPORT int FULL(letter, getrs)(void* handle, int trans, int n, int columns, const T* a, int lda, \
                                 const int* pivots, T* b, int ldb, int* info) {                    \
    return getrs(handle, trans, n, columns, a, lda, pivots, b, ldb, info);                         \
  }                                                                                                \
  EXPORT int FULL(letter, geqrf_bufferSize)(void* handle, int m, int n, T* a, int lda,             \
                                            int* size) {                                           \
    return size_of<T>(handle, m, n, a, lda, size);                                                 \
  }                                                                                                \
  EXPORT int FULL(letter, geqrf)(void* handle, int m, int n, T* a, int lda, T* tau, T* work,       \
                                 int size, int* info) {                                            \
    return geqrf(handle, m, n, a, lda, tau, work, size, info);                                     \
  }                                                                                                \
  EXPORT int FULL(letter, orgqr_size_name)(void* handle, int m, int n, int k, const T* a, int lda, \
                                           const T* tau, int* size) {                              \
    return orgqr_size(handle, m, n, k, a, lda, tau, size);                                         \
  }                                                                                                \
  EXPORT int FULL(letter, orgqr_name)(void* handle, int m, int n, int k, T* a, int lda,            \
                                      const T* tau, T* work, int size, int* info) {                \
    return orgqr(handle, m, n, k, a, lda, tau, work, size, info);                                  \
  }                                                                                                \
  EXPORT int FULL(letter, syevd_size_name)(void* handle, int job, int uplo, int n, const T* a,     \
                                           int lda, const RealPart<T>* w, int* size) {             \
    return syevd_size<T>(handle, job, uplo, n, a, lda, w, size);                                   \
  }                                                                                                \
  EXPORT int FULL(letter, syevd_name)(void* handle, int job, int uplo, int n, T* a, int lda,       \
                                      RealPart<T>* w, T* work, int size, int* info) {              \
    return syevd<T>(handle, job, uplo, n, a, lda, w, work, size, info);                            \
  }                                                                                                \
  EXPORT int FULL(letter, syevj_size_name)(void* handle, int job, int uplo, int n, const T* a,     \
                                           int lda, const RealPart<T>* w, int* size,               \
                                           void* options, int batch) {                             \
    return syevj_batched_size<T>(handle, job, uplo, n, a, lda, w, size, options, batch);           \
  }                                                                                                \
  EXPORT int FULL(letter, syevj_name)(void* handle, int job, int uplo, int n, T* a, int lda,       \
                                      RealPart<T>* w, T* work, int size, int* infos,               \
                                      void* options, int batch) {                                  \
    return syevj_batched<T>(handle, job, uplo, n, a, lda, w, work, size, infos, options, batch);   \
  }                                                                                                \
  EXPORT int FULL(letter, gesvdjBatched_bufferSize)(                                               \
      void* handle, int job, int m, int n, const T* a, int lda, const RealPart<T>* s, const T* u,  \
      int ldu, const T* v, int ldv, int* size, void* options, int batch) {                         \
    return gesvdj_batched_size<T>(handle, job, m, n, a, lda, s, u, ldu, v, ldv, size, options,     \
                                  batch);                                                          \
  }                                                                                                \
  EXPORT int FULL(letter, gesvdjBatched)(void* handle, int job, int m, int n, T* a, int lda,       \
                                         RealPart<T>* s, T* u, int ldu, T* v, int ldv, T* work,    \
                                         int size, int* infos, void* options, int batch) {         \
    return gesvdj_batched<T>(handle, job, m, n, a, lda, s, u, ldu, v, ldv, work, size, infos,      \
                             options, batch);                                                      \
  }                                                                                                \
  EXPORT int FULL(letter, gesvd_bufferSize)(void* handle, int m, int n, int* size) {               \
    return gesvd_size<T>(handle, m, n, size);                                                      \
  }                                                                                                \
  EXPORT int FULL(letter, gesvd)(void* handle, signed char job_u, signed char job_vt, int m,       \
                                 int n, T* a, int lda, RealPart<T>* s, T* u, int ldu, T* vt,       \
                                 int ldvt, T* work, int size, RealPart<T>* real_work, int* info) { \
    return gesvd<T>(handle, job_u, job_vt, m, n, a, lda, s, u, ldu, vt, ldvt, work, size,          \
                    real_work, info);                                                              \
  }                                                                                                \
  EXPORT int FULL(letter, sytrf_bufferSize)(void* handle, int n, T* a, int lda, int* size) {       \
    return size_of<T>(handle, n, n, a, lda, size);                                                 \
  }                                                                                                \
  EXPORT int FULL(letter, sytrf)(void* handle, int uplo, int n, T* a, int lda, int* pivots,        \
                                 T* work, int size, int* info) {                                   \
    return sytrf(handle, uplo, n, a, lda, pivots, work, size, info);                               \
  }
#define OF_REAL \
  orgqr, orgqr_bufferSize, syevd, syevd_bufferSize, syevjBatched, syevjBatched_bufferSize
#define OF_COMPLEX \
  ungqr, ungqr_bufferSize, heevd, heevd_bufferSize, heevjBatched, heevjBatched_bufferSize
#define EXPANDED(letter, T, ...) ROUTINES(letter, T, __VA_ARGS__)
EXPANDED(S, float, OF_REAL)
EXPANDED(D, double, OF_REAL)
EXPANDED(C, std::complex<float>, OF_COMPLEX)
EXPANDED(Z, std::complex<double>, OF_COMPLEX)
