// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include "columns.hpp"
#include "recent.hpp"

namespace tenon::fft {
namespace {

// Powers of two first, in eights and fours.
std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> factors;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  // One factor of two is left over: two fours instead of eight and two.
  int fours = twos % 3 == 1 && twos >= 4 ? 2 : twos % 3 == 2 ? 1 : 0;
  int rest = twos - 2 * fours;
  for (; rest >= 3; rest -= 3) factors.push_back(8);
  for (; fours > 0; --fours) factors.push_back(4);
  if (rest > 0) factors.push_back(2);
  for (int64_t p = 3; p * p <= n || n > 1; p += 2) {
    if (p * p > n) p = n;
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  return factors;
}

double work_of_radix(int64_t radix) {
  switch (radix) {
    case 2:
      return 4;
    case 3:
      return 7;
    case 4:
      return 6;
    case 5:
      return 10;
    case 7:
      return 15;
    case 8:
      return 9;
    default:
      return 3.0 * static_cast<double>(radix);
  }
}

// The transform of exp(pi i k^2 / n) for k = 1 - n ... n - 1, divided by the length, in double precision.
template <class T>
std::vector<Root<T>> spectrum_of_chirp(int64_t n, int64_t padded) {
  using Value = TENON_FFT_ISA::Complex<double>;
  std::vector<Value> data(static_cast<size_t>(padded), Value{0, 0}), work(data.size());
  int64_t square = 0;
  for (int64_t k = 0; k < n; ++k) {
    const Root<double> root = root_of_unity<double>(square, 2 * n);
    data[static_cast<size_t>(k)] = {root.re, -root.im};
    data[static_cast<size_t>((padded - k) % padded)] = {root.re, -root.im};
    square = (square + 2 * k + 1) % (2 * n);
  }
  const Value* spectrum =
      TENON_FFT_ISA::transform_columns(*plan_of<double>(padded), 1, data.data(), work.data());
  std::vector<Root<T>> scaled(static_cast<size_t>(padded));
  for (size_t k = 0; k < scaled.size(); ++k)
    scaled[k] = {static_cast<T>(spectrum[k].re / static_cast<double>(padded)),
                 static_cast<T>(spectrum[k].im / static_cast<double>(padded))};
  return scaled;
}

}  // namespace

double work_of(int64_t n) {
  double work = 0;
  for (const int64_t radix : factors_of(n)) work += work_of_radix(radix);
  return work;
}

int64_t convenient_length(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  double least = work_of(best) * static_cast<double>(best);
  for (int64_t three = 1; three <= 9 && three < best; three *= 3)
    for (int64_t five = three; five <= 25 * three && five < best; five *= 5) {
      int64_t length = five;
      while (length < n) length *= 2;
      const double work = work_of(length) * static_cast<double>(length);
      if (work < least) {
        least = work;
        best = length;
      }
    }
  return best;
}

template <class T>
Plan<T>::Plan(int64_t n) : n(n) {
  const std::vector<int64_t> factors = factors_of(n);
  if (!factors.empty() && factors.back() > kMaxRadix) {
    convolution = plan_of<T>(convenient_length(2 * n - 1));
    chirp.resize(static_cast<size_t>(n));
    // k^2 modulo 2 n by its differences, which do not overflow.
    int64_t square = 0;
    for (int64_t k = 0; k < n; ++k) {
      chirp[static_cast<size_t>(k)] = root_of_unity<T>(square, 2 * n);
      square = (square + 2 * k + 1) % (2 * n);
    }
    chirp_spectrum = spectrum_of_chirp<T>(n, convolution->n);
    return;
  }
  size_t count = 0;
  int64_t rest = n;
  for (const int64_t radix : factors) {
    rest /= radix;
    count +=
        static_cast<size_t>(rest * (radix - 1)) + (radix > 13 ? static_cast<size_t>(radix) : 0);
  }
  twiddles.reserve(count);  // so that pointers into it stay
  rest = n;
  int64_t done = 1;
  for (const int64_t radix : factors) {
    rest /= radix;
    Stage<T> stage{radix, rest, done, twiddles.data() + twiddles.size(), nullptr};
    for (int64_t p = 0; p < rest; ++p)
      for (int64_t j = 1; j < radix; ++j) twiddles.push_back(root_of_unity<T>(p * j, radix * rest));
    if (radix > 13) {
      stage.roots = twiddles.data() + twiddles.size();
      for (int64_t j = 0; j < radix; ++j) twiddles.push_back(root_of_unity<T>(j, radix));
    }
    stages.push_back(stage);
    done *= radix;
  }
}

template <class T>
std::shared_ptr<const Plan<T>> plan_of(int64_t n) {
  static Recent<Plan<T>> recent;
  return recent.get(n, [n] { return std::make_shared<const Plan<T>>(n); });
}

template struct Plan<float>;
template struct Plan<double>;
template std::shared_ptr<const Plan<float>> plan_of<float>(int64_t n);
template std::shared_ptr<const Plan<double>> plan_of<double>(int64_t n);

}  // namespace tenon::fft
