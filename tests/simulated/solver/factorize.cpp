// SPDX-License-Identifier: Apache-2.0
// Elimination: Cholesky, LU, LDL, and triangular systems.
#include <algorithm>
#include <utility>

#include "dense.hpp"

namespace simulated {
namespace {

// By which LAPACK chooses pivots: no square root is taken for a complex number.
double size_of(double x) { return std::abs(x); }
double size_of(std::complex<double> x) { return std::abs(x.real()) + std::abs(x.imag()); }

}  // namespace

template <class W>
int cholesky(Dense<W>& a, bool lower) {
  const int n = a.rows;
  // The factor's element (i, j), i >= j, wherever it is stored.
  const auto get = [&](int i, int j) { return lower ? a(i, j) : conjugate(a(j, i)); };
  const auto set = [&](int i, int j, W x) {
    (lower ? a(i, j) : a(j, i)) = lower ? x : conjugate(x);
  };
  for (int j = 0; j < n; ++j) {
    double pivot = std::real(get(j, j));
    for (int k = 0; k < j; ++k) pivot -= std::norm(get(j, k));
    if (!(pivot > 0)) return j + 1;
    pivot = std::sqrt(pivot);
    set(j, j, W(pivot));
    for (int i = j + 1; i < n; ++i) {
      W sum = get(i, j);
      for (int k = 0; k < j; ++k) sum -= get(i, k) * conjugate(get(j, k));
      set(i, j, sum / pivot);
    }
  }
  return 0;
}

template <class W>
int factor_lu(Dense<W>& a, int* pivots) {
  int info = 0;
  for (int k = 0; k < std::min(a.rows, a.columns); ++k) {
    int best = k;
    for (int i = k + 1; i < a.rows; ++i)
      if (size_of(a(i, k)) > size_of(a(best, k))) best = i;
    pivots[k] = best + 1;
    for (int j = 0; best != k && j < a.columns; ++j) std::swap(a(k, j), a(best, j));
    if (a(k, k) == W(0)) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (int i = k + 1; i < a.rows; ++i) {
      a(i, k) /= a(k, k);
      for (int j = k + 1; j < a.columns; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return info;
}

template <class W>
void solve_lu(const Dense<W>& lu, const int* pivots, Dense<W>& b) {
  for (int k = 0; k < lu.rows; ++k)
    for (int j = 0; j < b.columns; ++j) std::swap(b(k, j), b(pivots[k] - 1, j));
  solve_triangular(lu, b, true, true, true);
  solve_triangular(lu, b, true, false, false);
}

template <class W>
void solve_triangular(const Dense<W>& a, Dense<W>& b, bool left, bool lower, bool unit) {
  const int n = a.rows;
  // x @ a == b is a.T @ x.T == b.T.
  const auto triangle = [&](int i, int j) { return left ? a(i, j) : a(j, i); };
  const auto side = [&](int i, int j) -> W& { return left ? b(i, j) : b(j, i); };
  const bool forward = left == lower;
  for (int column = 0; column < (left ? b.columns : b.rows); ++column)
    for (int step = 0; step < n; ++step) {
      const int i = forward ? step : n - 1 - step;
      W sum = side(i, column);
      for (int k = forward ? 0 : i + 1; k < (forward ? i : n); ++k)
        sum -= triangle(i, k) * side(k, column);
      side(i, column) = unit ? sum : sum / triangle(i, i);
    }
}

template <class W>
int factor_ldl(Dense<W>& a, int* pivots) {
  const int n = a.rows;
  const double bound = (1 + std::sqrt(17.0)) / 8;
  const auto at = [&](int i, int j) -> W& { return i >= j ? a(i, j) : a(j, i); };
  int info = 0;
  for (int k = 0; k < n;) {
    int largest = k, width = 1, chosen = k;
    for (int i = k + 1; i < n; ++i)
      if (largest == k || std::abs(at(i, k)) > std::abs(at(largest, k))) largest = i;
    const double own = std::abs(at(k, k)), column = largest == k ? 0 : std::abs(at(largest, k));
    if (!(std::max(own, column) > 0)) {
      if (info == 0) info = k + 1;
      pivots[k] = k + 1;
      ++k;
      continue;
    }
    if (own < bound * column) {
      double row = 0;
      for (int i = k; i < n; ++i)
        if (i != largest) row = std::max(row, std::abs(at(largest, i)));
      if (own * row < bound * column * column) {
        chosen = largest;
        width = std::abs(at(largest, largest)) >= bound * row ? 1 : 2;
      }
    }
    const int moved = k + width - 1;
    if (chosen != moved) {
      // Rows and columns change with each other, from k on.
      for (int i = k; i < n; ++i)
        if (i != moved && i != chosen) std::swap(at(i, moved), at(i, chosen));
      std::swap(at(moved, moved), at(chosen, chosen));
    }
    if (width == 1) {
      const W pivot = at(k, k);
      for (int j = k + 1; j < n; ++j)
        for (int i = j; i < n; ++i) at(i, j) -= at(i, k) * at(j, k) / pivot;
      for (int i = k + 1; i < n; ++i) at(i, k) /= pivot;
      pivots[k] = chosen + 1;
    } else {
      const W first = at(k, k), other = at(k + 1, k), second = at(k + 1, k + 1);
      const W determinant = first * second - other * other;
      std::vector<W> left(static_cast<size_t>(n)), right(static_cast<size_t>(n));
      for (int i = k + 2; i < n; ++i) {
        left[static_cast<size_t>(i)] = (at(i, k) * second - at(i, k + 1) * other) / determinant;
        right[static_cast<size_t>(i)] = (at(i, k + 1) * first - at(i, k) * other) / determinant;
      }
      for (int j = k + 2; j < n; ++j)
        for (int i = j; i < n; ++i)
          at(i, j) -= left[static_cast<size_t>(i)] * at(j, k) +
                      right[static_cast<size_t>(i)] * at(j, k + 1);
      for (int i = k + 2; i < n; ++i) {
        at(i, k) = left[static_cast<size_t>(i)];
        at(i, k + 1) = right[static_cast<size_t>(i)];
      }
      pivots[k] = pivots[k + 1] = -(chosen + 1);
    }
    k += width;
  }
  return info;
}

#define INSTANTIATE(W)                                            \
  template int cholesky(Dense<W>&, bool);                         \
  template int factor_lu(Dense<W>&, int*);                        \
  template void solve_lu(const Dense<W>&, const int*, Dense<W>&); \
  template int factor_ldl(Dense<W>&, int*);                       \
  template void solve_triangular(const Dense<W>&, Dense<W>&, bool, bool, bool);
INSTANTIATE(double)
INSTANTIATE(std::complex<double>)

}  // namespace simulated
