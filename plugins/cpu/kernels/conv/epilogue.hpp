// SPDX-License-Identifier: Apache-2.0
// What follows a convolution in a network: normalisation, addition of a residual, ReLU, and other
// elementwise steps. It is computed as soon as some results are complete, while the L1 or L2 cache
// holds them.
#pragma once

#include "conv/following_steps.hpp"
#include "simd/isa.hpp"

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA {

// y = relu((y - center) * scale + shift + residual), of which each part may be missing. It has the
// bits of the kernels of batch_norm_inference, add and relu: the same operations in the same order.
template <class T>
struct ConvEpilogue {
  const T *center = nullptr, *scale = nullptr, *shift = nullptr;  // By filter: all three or none.
  const T* residual = nullptr;                                    // Dense, like the results.
  bool has_relu = false;
  T* results = nullptr;  // Where all results begin.
  // Steps behind these, and the tensors that they read beside results. NULL: there are none.
  const FollowingSteps* following = nullptr;
  const float* const* others = nullptr;
  std::atomic<bool>* failed = nullptr;  // Set where a step fails.

  bool is_needed() const { return center || residual || has_relu || following; }

  // Rows of a piece that begins at `first`, one filter each: all that follows.
  void on_filters(int64_t filter, T* first, const ResultPiece& piece) const {
    for (int64_t p = 0; p < piece.planes; ++p) {
      for (int64_t r = 0; r < piece.rows; ++r) {
        (*this)(filter + p, first + p * piece.plane + r * piece.row, piece.columns);
      }
    }
    finish(first, piece);
  }

  // The steps behind normalisation, addition and ReLU.
  void finish(T* first, const ResultPiece& piece) const {
    if constexpr (std::is_same_v<T, float>) {
      if (following && !following->run(first, first - results, others, piece)) {
        failed->store(true, std::memory_order_relaxed);
      }
    }
  }

  // Normalisation, addition and ReLU of `n` adjacent results of one filter, from `row` on.
  void operator()(int64_t filter, T* row, int64_t n) const {
    if (!center && !residual && !has_relu) return;
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
