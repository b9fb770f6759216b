// SPDX-License-Identifier: Apache-2.0
// The LAPACK library of this process, found when a kernel first needs it, and a table of its routines
// for each element type.
#pragma once

#include <tenon/abi.h>

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::lapack {

// Routines get integers by address. Libraries differ in their width: most have 32 bits, and those
// built for large matrices 64. On a little-endian machine the address of a small int64_t serves both:
// a routine with 32 bits reads, and writes, the lower half. Arrays of integers differ; see Pivots.
static_assert(std::endian::native == std::endian::little);
using Int = int64_t;
using In = const Int*;
using Flag = const char*;
using Length = size_t;  // Fortran compilers pass the length of each text after all arguments

// The real type of the parts of T.
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

// The routines that kernels call, in the order of kNames in library.cpp. Those whose arguments differ
// between real and complex elements have two types, of which kernels use the one for T.
template <class T>
struct Routines {
  using R = Real<T>;
  template <class RealType, class ComplexType>
  using Either = std::conditional_t<kIsComplex<T>, ComplexType, RealType>;

  void (*potrf)(Flag uplo, In n, T* a, In lda, Int* info, Length);
  void (*getrf)(In m, In n, T* a, In lda, void* pivots, Int* info);
  void (*getri)(In n, T* a, In lda, void* pivots, T* work, In lwork, Int* info);
  void (*gesv)(In n, In nrhs, T* a, In lda, void* pivots, T* b, In ldb, Int* info);
  void (*trsm)(Flag side, Flag uplo, Flag trans, Flag diag, In m, In n, const T* alpha, const T* a,
               In lda, T* b, In ldb, Length, Length, Length, Length);
  void (*gemm)(Flag transa, Flag transb, In m, In n, In k, const T* alpha, const T* a, In lda,
               const T* b, In ldb, const T* beta, T* c, In ldc, Length, Length);
  void (*geqrf)(In m, In n, T* a, In lda, T* tau, T* work, In lwork, Int* info);
  void (*orgqr)(In m, In n, In k, T* a, In lda, const T* tau, T* work, In lwork, Int* info);
  Either<void (*)(Flag job, In m, In n, T* a, In lda, R* s, T* u, In ldu, T* vt, In ldvt, T* work,
                  In lwork, void* iwork, Int* info, Length),
         void (*)(Flag job, In m, In n, T* a, In lda, R* s, T* u, In ldu, T* vt, In ldvt, T* work,
                  In lwork, R* rwork, void* iwork, Int* info, Length)>
      gesdd;
  Either<void (*)(Flag job, Flag uplo, In n, T* a, In lda, R* w, T* work, In lwork, void* iwork,
                  In liwork, Int* info, Length, Length),
         void (*)(Flag job, Flag uplo, In n, T* a, In lda, R* w, T* work, In lwork, R* rwork,
                  In lrwork, void* iwork, In liwork, Int* info, Length, Length)>
      syevd;
  Either<void (*)(Flag left, Flag right, In n, T* a, In lda, R* wr, R* wi, T* vl, In ldvl, T* vr,
                  In ldvr, T* work, In lwork, Int* info, Length, Length),
         void (*)(Flag left, Flag right, In n, T* a, In lda, T* w, T* vl, In ldvl, T* vr, In ldvr,
                  T* work, In lwork, R* rwork, Int* info, Length, Length)>
      geev;
  Either<void (*)(In m, In n, In nrhs, T* a, In lda, T* b, In ldb, R* s, const R* rcond, Int* rank,
                  T* work, In lwork, void* iwork, Int* info),
         void (*)(In m, In n, In nrhs, T* a, In lda, T* b, In ldb, R* s, const R* rcond, Int* rank,
                  T* work, In lwork, R* rwork, void* iwork, Int* info)>
      gelsd;
  // Of symmetric matrices, and of Hermitian ones, which among real numbers are the same.
  using Factor = void (*)(Flag uplo, In n, T* a, In lda, void* pivots, T* work, In lwork, Int* info,
                          Length);
  using Solve = void (*)(Flag uplo, In n, In nrhs, const T* a, In lda, const void* pivots, T* b,
                         In ldb, Int* info, Length);
  Factor sytrf;
  Solve sytrs;
  Factor hetrf;
  Solve hetrs;
};

struct Library {
  bool has_64_bits = false;  // of its integers
  std::string name;
  Routines<float> s;
  Routines<double> d;
  Routines<std::complex<float>> c;
  Routines<std::complex<double>> z;

  template <class T>
  const Routines<T>& routines() const {
    if constexpr (std::is_same_v<T, float>) return s;
    if constexpr (std::is_same_v<T, double>) return d;
    if constexpr (std::is_same_v<T, std::complex<float>>) return c;
    if constexpr (std::is_same_v<T, std::complex<double>>) return z;
  }
  // An integer that a routine has written over zero.
  int64_t read(Int written) const {
    return has_64_bits ? written : static_cast<int32_t>(written & 0xffffffff);
  }
  // Element i of an array of integers that a routine has written. The array has room for 64 bits each.
  int64_t read(const void* array, int64_t i) const {
    return has_64_bits ? static_cast<const int64_t*>(array)[i]
                       : static_cast<const int32_t*>(array)[i];
  }
  // The same for an array that a routine reads.
  void write(void* array, int64_t i, int64_t number) const {
    if (has_64_bits)
      static_cast<int64_t*>(array)[i] = number;
    else
      static_cast<int32_t*>(array)[i] = static_cast<int32_t>(number);
  }
};

// NULL, and an error for `op`, where the machine has no LAPACK.
const Library* library(const char* op, tenon_err* err);

}  // namespace tenon::lapack
