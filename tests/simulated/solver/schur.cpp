// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of matrices that are not Hermitian: the QR algorithm with shifts, on the whole matrix until it is triangular,
// and vectors by back substitution.
#include <limits>

#include "dense.hpp"

namespace simulated {
namespace {

using Complex = std::complex<double>;
using Matrix = Dense<Complex>;

// The eigenvalue of the last two rows and columns that is nearer to the last element.
Complex shift_of(const Matrix& t, int last) {
  const Complex a = t(last - 1, last - 1), b = t(last - 1, last), c = t(last, last - 1),
                d = t(last, last);
  const Complex half = (a + d) / 2.0, root = std::sqrt((a - d) * (a - d) / 4.0 + b * c);
  return std::abs(half + root - d) < std::abs(half - root - d) ? half + root : half - root;
}

// Rows and columns up to `last` become those of Q.H @ t @ Q, where Q @ R == t - shift there.
void step(Matrix& t, Matrix& vectors, int last, Complex shift) {
  const int size = last + 1, n = t.rows;
  Matrix part(size, size);
  for (int j = 0; j < size; ++j)
    for (int i = 0; i < size; ++i) part(i, j) = t(i, j) - (i == j ? shift : Complex(0));
  std::vector<Complex> tau;
  reflect(part, tau);
  Matrix q = part;
  multiply_reflections(q, tau);
  for (int j = 0; j < size; ++j)
    for (int i = 0; i < size; ++i) {
      Complex sum = i == j ? shift : Complex(0);
      for (int k = i; k < size; ++k) sum += part(i, k) * q(k, j);
      t(i, j) = sum;
    }
  for (int j = size; j < n; ++j) {
    std::vector<Complex> column(static_cast<size_t>(size));
    for (int i = 0; i < size; ++i)
      for (int k = 0; k < size; ++k) column[static_cast<size_t>(i)] += conjugate(q(k, i)) * t(k, j);
    for (int i = 0; i < size; ++i) t(i, j) = column[static_cast<size_t>(i)];
  }
  for (int i = 0; i < n; ++i) {
    std::vector<Complex> row(static_cast<size_t>(size));
    for (int j = 0; j < size; ++j)
      for (int k = 0; k < size; ++k) row[static_cast<size_t>(j)] += vectors(i, k) * q(k, j);
    for (int j = 0; j < size; ++j) vectors(i, j) = row[static_cast<size_t>(j)];
  }
}

}  // namespace

int general_eigenvalues(const Matrix& a, std::vector<Complex>& w, Matrix& vectors) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  constexpr int kMaxRounds = 300, kOtherShift = 11;
  const int n = a.rows;
  Matrix t = a, schur(n, n);
  double size = 0;
  for (const Complex& each : a.data) size += std::norm(each);
  size = std::sqrt(size);
  for (int i = 0; i < n; ++i) schur(i, i) = 1;
  for (int last = n - 1; last > 0; --last)
    for (int round = 1;; ++round) {
      double left = 0;
      for (int j = 0; j < last; ++j) left += std::norm(t(last, j));
      if (std::sqrt(left) <= kEpsilon * size) {
        for (int j = 0; j < last; ++j) t(last, j) = 0;
        break;
      }
      if (round == kMaxRounds) return last + 1;
      // Now and then another shift, for matrices on which the usual one goes in circles.
      const bool is_usual = round % kOtherShift != 0;
      step(t, schur, last,
           is_usual ? shift_of(t, last) : Complex(size / round, size / (round + 1)));
    }
  w.clear();
  vectors = Matrix(n, n);
  for (int k = 0; k < n; ++k) {
    w.push_back(t(k, k));
    std::vector<Complex> x(static_cast<size_t>(n));
    x[static_cast<size_t>(k)] = 1;
    for (int i = k - 1; i >= 0; --i) {
      Complex sum = 0, difference = t(i, i) - t(k, k);
      for (int j = i + 1; j <= k; ++j) sum -= t(i, j) * x[static_cast<size_t>(j)];
      if (std::abs(difference) < kEpsilon * size) difference = kEpsilon * (size > 0 ? size : 1);
      x[static_cast<size_t>(i)] = sum / difference;
    }
    double norm = 0;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= k; ++j) vectors(i, k) += schur(i, j) * x[static_cast<size_t>(j)];
      norm += std::norm(vectors(i, k));
    }
    for (int i = 0; i < n; ++i) vectors(i, k) /= std::sqrt(norm);
  }
  return 0;
}

}  // namespace simulated
