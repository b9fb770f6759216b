// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the solver's stand-ins: textbook algorithms in float64 on copies of matrices by columns (Golub, Van
// Loan, Matrix Computations; Bunch, Kaufman, 1977, for LDL).
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace simulated {

template <class T>
struct WideOf {
  using type = double;
};
template <class T>
struct WideOf<std::complex<T>> {
  using type = std::complex<double>;
};
// What a number of type T is computed in.
template <class T>
using Wide = typename WideOf<T>::type;
template <class T>
struct RealPartOf {
  using type = T;
};
template <class T>
struct RealPartOf<std::complex<T>> {
  using type = T;
};
template <class T>
using RealPart = typename RealPartOf<T>::type;

inline double conjugate(double x) { return x; }
inline std::complex<double> conjugate(std::complex<double> x) { return std::conj(x); }

template <class W>
struct Dense {
  int rows, columns;
  std::vector<W> data;

  Dense(int m, int n)
      : rows(m), columns(n), data(static_cast<size_t>(m) * static_cast<size_t>(n)) {}
  W& operator()(int i, int j) {
    return data[static_cast<size_t>(j) * static_cast<size_t>(rows) + static_cast<size_t>(i)];
  }
  const W& operator()(int i, int j) const {
    return data[static_cast<size_t>(j) * static_cast<size_t>(rows) + static_cast<size_t>(i)];
  }
};

template <class T>
Dense<Wide<T>> load(const T* from, int m, int n, int ld) {
  Dense<Wide<T>> x(m, n);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i)
      x(i, j) = static_cast<Wide<T>>(
          from[static_cast<size_t>(j) * static_cast<size_t>(ld) + static_cast<size_t>(i)]);
  return x;
}
template <class T>
void store(const Dense<Wide<T>>& x, T* to, int ld) {
  for (int j = 0; j < x.columns; ++j)
    for (int i = 0; i < x.rows; ++i)
      to[static_cast<size_t>(j) * static_cast<size_t>(ld) + static_cast<size_t>(i)] =
          static_cast<T>(x(i, j));
}

// Those that return a number return LAPACK's info. Pivots count from 1.
template <class W>
int cholesky(Dense<W>& a, bool lower);  // the other triangle is left as it is
template <class W>
int factor_lu(Dense<W>& a, int* pivots);
template <class W>
void solve_lu(const Dense<W>& lu, const int* pivots, Dense<W>& b);
template <class W>
int factor_ldl(Dense<W>& a, int* pivots);  // symmetric, by the lower triangle
template <class W>
void solve_triangular(const Dense<W>& a, Dense<W>& b, bool left, bool lower, bool unit);
template <class W>
void reflect(Dense<W>& a, std::vector<W>& tau);  // geqrf
template <class W>
void multiply_reflections(Dense<W>& a, const std::vector<W>& tau);  // orgqr
// Ascending values; the vectors become the columns of `a`. One triangle is read.
template <class W>
int eigenvalues(Dense<W>& a, bool lower, std::vector<double>& w);
// Eigenvalues of any square matrix, with vectors of length 1 in the columns of `vectors`.
int general_eigenvalues(const Dense<std::complex<double>>& a, std::vector<std::complex<double>>& w,
                        Dense<std::complex<double>>& vectors);
// a == u @ diag(s) @ vh with as many rows as columns, or more; `u` gets `vectors` columns.
template <class W>
int singular_values(const Dense<W>& a, std::vector<double>& s, int vectors, Dense<W>& u,
                    Dense<W>& vh);

}  // namespace simulated
