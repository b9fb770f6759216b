// SPDX-License-Identifier: Apache-2.0
// The functions of vector_math.hpp as loops over arrays, as generated kernels run them; compiled
// for every instruction set, measured by math_accuracy.cpp.
#pragma once

#include <cstdint>

namespace tenon::cpu {

struct MathFunction {
  const char* name;
  int arguments;
  void (*single)(const float* x, const float* y, float* out, int64_t n);
  void (*twice)(const double* x, const double* y, double* out, int64_t n);
};
struct MathFunctions {
  const MathFunction* begin;
  const MathFunction* end;
};

namespace baseline {
MathFunctions math_functions();
}
namespace avx2 {
MathFunctions math_functions();
}
namespace avx512 {
MathFunctions math_functions();
}

}  // namespace tenon::cpu
