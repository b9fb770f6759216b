// SPDX-License-Identifier: Apache-2.0
// What follows a convolution in a network: normalisation, addition of a residual, ReLU. It is
// computed row by row as soon as results are complete, while the L1 or L2 cache holds them.
#pragma once

#include "simd/isa.hpp"

#include <cstdint>

namespace tenon::cpu::TENON_CPU_ISA {

// y = relu((y - center) * scale + shift + residual), of which each part may be missing. It has the
// bits of the kernels of batch_norm_inference, add and relu: the same operations in the same order.
template <class T>
struct ConvEpilogue {
  const T *center = nullptr, *scale = nullptr, *shift = nullptr;  // By filter: all three or none.
  const T* residual = nullptr;                                    // Dense, like the results.
  bool has_relu = false;
  const T* results = nullptr;  // Where all results begin.

  // `n` adjacent results of one filter, from `row` on.
  void operator()(int64_t filter, T* row, int64_t n) const {
    const T c = center ? center[filter] : T(0), s = center ? scale[filter] : T(1);
    const T h = center ? shift[filter] : T(0);
    const T* added = residual ? residual + (row - results) : nullptr;
    const auto run = [&]<bool Norm, bool Add, bool Relu>() {
      for (int64_t j = 0; j < n; ++j) {
        T y = row[j];
        if (Norm) y = (y - c) * s + h;
        if (Add) y = y + added[j];
        if (Relu) {
          const T greater = y > T(0) ? y : T(0);
          y = y != y ? y : greater;  // NaN stays NaN.
        }
        row[j] = y;
      }
    };
    const auto with_relu = [&]<bool Norm, bool Add>() {
      has_relu ? run.template operator()<Norm, Add, true>()
               : run.template operator()<Norm, Add, false>();
    };
    if (center) {
      added ? with_relu.template operator()<true, true>()
            : with_relu.template operator()<true, false>();
    } else {
      added ? with_relu.template operator()<false, true>()
            : with_relu.template operator()<false, false>();
    }
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA
