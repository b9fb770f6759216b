// SPDX-License-Identifier: Apache-2.0
// Orthogonal transformations: Householder's reflections, and Jacobi's rotations for eigenvalues and singular values.
#include <algorithm>
#include <limits>
#include <numeric>

#include "dense.hpp"

namespace simulated {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kMaxSweeps = 60;

// The rotation of columns p and q after which their product, `phase` times a positive number, is zero: the new columns
// are c * p - s * conj(phase) * q and s * phase * p + c * q.
template <class W>
struct Rotation {
  double c, s;
  W phase;
  Rotation(double first, double second, W product) {
    const double size = std::abs(product), tau = (second - first) / (2 * size);
    const double t = (tau < 0 ? -1 : 1) / (std::abs(tau) + std::sqrt(1 + tau * tau));
    c = 1 / std::sqrt(1 + t * t);
    s = t * c;
    phase = product / size;
  }
  void columns(Dense<W>& x, int p, int q) const {
    for (int i = 0; i < x.rows; ++i) {
      const W first = x(i, p), second = x(i, q);
      x(i, p) = c * first - s * conjugate(phase) * second;
      x(i, q) = s * phase * first + c * second;
    }
  }
  void rows(Dense<W>& x, int p, int q) const {
    for (int j = 0; j < x.columns; ++j) {
      const W first = x(p, j), second = x(q, j);
      x(p, j) = c * first - s * phase * second;
      x(q, j) = s * conjugate(phase) * first + c * second;
    }
  }
};

template <class W>
Dense<W> identity(int n) {
  Dense<W> x(n, n);
  for (int i = 0; i < n; ++i) x(i, i) = 1;
  return x;
}

// Column `j` of `x` becomes a unit vector that is orthogonal to all before it.
template <class W>
void complete(Dense<W>& x, int j) {
  for (int start = 0; start < x.rows; ++start) {
    for (int i = 0; i < x.rows; ++i) x(i, j) = W(i == start);
    for (int again = 0; again < 2; ++again)
      for (int k = 0; k < j; ++k) {
        W product = 0;
        for (int i = 0; i < x.rows; ++i) product += conjugate(x(i, k)) * x(i, j);
        for (int i = 0; i < x.rows; ++i) x(i, j) -= product * x(i, k);
      }
    double norm = 0;
    for (int i = 0; i < x.rows; ++i) norm += std::norm(x(i, j));
    norm = std::sqrt(norm);
    if (norm < 0.5 / std::sqrt(x.rows + 1.0)) continue;  // some unit vector always has more left
    for (int i = 0; i < x.rows; ++i) x(i, j) /= norm;
    return;
  }
}

}  // namespace

template <class W>
void reflect(Dense<W>& a, std::vector<W>& tau) {
  const int k = std::min(a.rows, a.columns);
  tau.assign(static_cast<size_t>(k), W(0));
  for (int j = 0; j < k; ++j) {
    double below = 0;
    for (int i = j + 1; i < a.rows; ++i) below += std::norm(a(i, j));
    const W alpha = a(j, j);
    if (below == 0 && std::imag(alpha) == 0) continue;
    const double norm = std::sqrt(std::norm(alpha) + below);
    const double beta = std::real(alpha) > 0 ? -norm : norm;
    tau[static_cast<size_t>(j)] = (W(beta) - alpha) / beta;
    for (int i = j + 1; i < a.rows; ++i) a(i, j) /= alpha - beta;
    a(j, j) = beta;
    for (int column = j + 1; column < a.columns; ++column) {
      W product = a(j, column);
      for (int i = j + 1; i < a.rows; ++i) product += conjugate(a(i, j)) * a(i, column);
      product *= conjugate(tau[static_cast<size_t>(j)]);
      a(j, column) -= product;
      for (int i = j + 1; i < a.rows; ++i) a(i, column) -= a(i, j) * product;
    }
  }
}

template <class W>
void multiply_reflections(Dense<W>& a, const std::vector<W>& tau) {
  const Dense<W> vectors = a;
  for (int j = 0; j < a.columns; ++j)
    for (int i = 0; i < a.rows; ++i) a(i, j) = W(i == j);
  for (int k = static_cast<int>(tau.size()) - 1; k >= 0; --k)
    for (int j = 0; j < a.columns; ++j) {
      W product = a(k, j);
      for (int i = k + 1; i < a.rows; ++i) product += conjugate(vectors(i, k)) * a(i, j);
      product *= tau[static_cast<size_t>(k)];
      a(k, j) -= product;
      for (int i = k + 1; i < a.rows; ++i) a(i, j) -= vectors(i, k) * product;
    }
}

template <class W>
int eigenvalues(Dense<W>& a, bool lower, std::vector<double>& w) {
  const int n = a.rows;
  for (int j = 0; j < n; ++j) {
    a(j, j) = std::real(a(j, j));
    for (int i = 0; i < j; ++i) (lower ? a(i, j) : a(j, i)) = conjugate(lower ? a(j, i) : a(i, j));
  }
  Dense<W> vectors = identity<W>(n);
  bool rotated = true;
  int sweeps = 0;
  for (; rotated && sweeps < kMaxSweeps; ++sweeps) {
    rotated = false;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        const double first = std::real(a(p, p)), second = std::real(a(q, q));
        if (!(std::abs(a(p, q)) > kEpsilon * std::sqrt(std::abs(first * second)) &&
              std::abs(a(p, q)) > 1e-300))
          continue;
        // Below what any element of the matrix can resolve, nothing is left to do.
        if (std::abs(a(p, q)) < kEpsilon * kEpsilon * (std::abs(first) + std::abs(second)))
          continue;
        const Rotation<W> rotation(first, second, a(p, q));
        rotation.columns(a, p, q);
        rotation.rows(a, p, q);
        rotation.columns(vectors, p, q);
        rotated = true;
      }
  }
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int i, int j) { return std::real(a(i, i)) < std::real(a(j, j)); });
  w.clear();
  for (int i : order) w.push_back(std::real(a(i, i)));
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) a(i, j) = vectors(i, order[static_cast<size_t>(j)]);
  return sweeps == kMaxSweeps && rotated ? 1 : 0;
}

template <class W>
int singular_values(const Dense<W>& a, std::vector<double>& s, int vectors, Dense<W>& u,
                    Dense<W>& vh) {
  const int m = a.rows, n = a.columns;
  Dense<W> x = a, v = identity<W>(n);
  bool rotated = true;
  int sweeps = 0;
  for (; rotated && sweeps < kMaxSweeps; ++sweeps) {
    rotated = false;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        double first = 0, second = 0;
        W product = 0;
        for (int i = 0; i < m; ++i) {
          first += std::norm(x(i, p));
          second += std::norm(x(i, q));
          product += conjugate(x(i, p)) * x(i, q);
        }
        if (!(std::abs(product) > 4 * kEpsilon * std::sqrt(first * second)) ||
            std::abs(product) < 1e-300)
          continue;
        const Rotation<W> rotation(first, second, product);
        rotation.columns(x, p, q);
        rotation.columns(v, p, q);
        rotated = true;
      }
  }
  std::vector<double> norms(static_cast<size_t>(n));
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += std::norm(x(i, j));
    norms[static_cast<size_t>(j)] = std::sqrt(sum);
  }
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
    return norms[static_cast<size_t>(i)] > norms[static_cast<size_t>(j)];
  });
  s.clear();
  u = Dense<W>(m, vectors);
  vh = Dense<W>(n, n);
  for (int j = 0; j < n; ++j) {
    const int from = order[static_cast<size_t>(j)];
    s.push_back(norms[static_cast<size_t>(from)]);
    for (int i = 0; i < n; ++i) vh(j, i) = conjugate(v(i, from));
    if (j >= vectors) continue;
    if (s.back() > 16 * kEpsilon * n * s.front())
      for (int i = 0; i < m; ++i) u(i, j) = x(i, from) / s.back();
    else
      complete(u, j);
  }
  for (int j = n; j < vectors; ++j) complete(u, j);
  return sweeps == kMaxSweeps && rotated ? 1 : 0;
}

#define INSTANTIATE(W)                                                  \
  template void reflect(Dense<W>&, std::vector<W>&);                    \
  template void multiply_reflections(Dense<W>&, const std::vector<W>&); \
  template int eigenvalues(Dense<W>&, bool, std::vector<double>&);      \
  template int singular_values(const Dense<W>&, std::vector<double>&, int, Dense<W>&, Dense<W>&);
INSTANTIATE(double)
INSTANTIATE(std::complex<double>)

}  // namespace simulated
