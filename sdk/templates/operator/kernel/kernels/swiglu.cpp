// SPDX-License-Identifier: Apache-2.0
#include <acme/swiglu_cpu.hpp>

#include <cmath>

template <class T>
void acme::swiglu_cpu(KernelContext& context, View<const T> x, View<const T> gate, View<T> out) {
  using Number = tenon::arithmetic_t<T>;
  context.parallel(out.size(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Number a = x[i], b = gate[i];
      out[i] = static_cast<T>(a / (1 + std::exp(-a)) * b);
    }
  });
}
