// SPDX-License-Identifier: Apache-2.0
#include <rich/fail_cpu.hpp>
#include <rich/positive_cpu.hpp>
#include <rich/swiglu_backward_cpu.hpp>
#include <rich/swiglu_cpu.hpp>

#include <cmath>

namespace {

template <class Number>
Number sigmoid(Number x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

template <class T>
void rich::swiglu_cpu(KernelContext& context, View<const T> x, View<const T> gate, double limit,
                      View<T> out) {
  using Number = tenon::arithmetic_t<T>;
  context.parallel(out.size(), [&](int64_t begin, int64_t end) {
    // Where threads run: what they throw must arrive too.
    if (limit < 0)
      throw std::invalid_argument("limit: expected at least 0, got " + std::to_string(limit));
    for (int64_t i = begin; i < end; ++i) {
      const Number a = x[i], b = gate[i];
      out[i] = static_cast<T>(a * sigmoid(a) * b);
    }
  });
}

template <class T>
void rich::swiglu_backward_cpu(KernelContext& context, View<const T> dout, View<const T> x,
                               View<const T> gate, View<T> dx, View<T> dgate) {
  T* sigmoids = context.scratch<T>(x.size());
  for (int64_t i = 0; i < x.size(); ++i) sigmoids[i] = sigmoid(x[i]);
  for (int64_t i = 0; i < x.size(); ++i) {
    const T s = sigmoids[i];
    dx[i] = dout[i] * gate[i] * s * (1 + x[i] * (1 - s));
    dgate[i] = dout[i] * x[i] * s;
  }
}

template <class T>
void rich::positive_cpu(KernelContext& context, View<const T> x) {
  int64_t count = 0;
  for (T value : x) count += value > 0;
  View<T> out = context.allocate<T>(0, std::span(&count, 1));
  T* to = out.begin();
  for (T value : x)
    if (value > 0) *to++ = value;
}

template <class T>
void rich::fail_cpu(KernelContext& context, View<const T> x, std::string_view how, View<T> out) {
  if (how == "code") throw tenon::Error(TENON_UNAVAILABLE, "the coprocessor is gone");
  if (how == "range") throw std::out_of_range("no such row");
  if (how == "memory") throw std::bad_alloc();
  if (how == "number") throw 42;
  if (how == "runtime") throw std::runtime_error("it did not converge");
  if (how == "axis") out[0] = static_cast<T>(x.shape(7));
  if (how == "dtype") tenon::View<const double>(x.tensor());
  if (how == "scratch") context.scratch<char>(int64_t{1} << 60);
}
