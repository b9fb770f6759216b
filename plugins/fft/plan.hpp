// SPDX-License-Identifier: Apache-2.0
// What the transforms of one length share: the factors of the length, and roots of unity. Nothing here
// depends on the instruction set.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "roots.hpp"

namespace tenon::fft {

// Larger prime factors are left to Bluestein's algorithm, which costs as much as transforms of such a radix.
inline constexpr int64_t kMaxRadix = 37;

// One pass of Stockham's algorithm: `radix` transforms of length `rest` become one of length radix * rest,
// `done` times. twiddles[p * (radix - 1) + j - 1] is the root of order radix * rest to the power p * j.
template <class T>
struct Stage {
  int64_t radix, rest, done;
  const Root<T>* twiddles;
  const Root<T>* roots;  // of order `radix`, where no butterfly is written for it
};

// A transform along one axis. Its working memory has rows() rows.
template <class T>
struct Plan {
  explicit Plan(int64_t n);
  int64_t rows() const { return convolution ? convolution->n : n; }

  int64_t n;
  std::vector<Stage<T>> stages;  // empty for a length of 1, and for Bluestein's algorithm
  std::vector<Root<T>> twiddles;

  // Bluestein's algorithm (1970): a convolution with the chirp exp(pi i k^2 / n), whose spectrum, divided by the
  // length of the convolution, is kept.
  std::shared_ptr<const Plan> convolution;
  std::vector<Root<T>> chirp, chirp_spectrum;
};

// Plans of recent lengths are kept. Any thread may ask; std::bad_alloc where memory is short.
template <class T>
std::shared_ptr<const Plan<T>> plan_of(int64_t n);

// Additions and multiplications of one number in all stages, roughly.
double work_of(int64_t n);
// The least length from n on that has small prime factors only, and little work.
int64_t convenient_length(int64_t n);

}  // namespace tenon::fft
