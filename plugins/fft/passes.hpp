// SPDX-License-Identifier: Apache-2.0
// One-dimensional transforms along one axis of a tensor, compiled for several instruction sets.
#pragma once

#include <cstdint>

namespace tenon::fft {

// Bytes of both buffers of a panel: adjacent lines are the columns of a matrix, of which as many as fit into
// the second cache are transformed together, so that each row is read and written in long runs.
inline constexpr int64_t kPanelBytes = 512 << 10;

// `shape` is that of the longer side: for transforms between real and complex numbers the real one.
// Strides are in bytes. The exponent of a transform of complex numbers is negative if `forward`.
struct Pass {
  const void* in;
  void* out;
  int32_t ndim;
  const int64_t* shape;
  const int64_t* in_strides;
  const int64_t* out_strides;
  int32_t axis;
  bool forward;
  double scale;
};
using PassFunction = void (*)(const Pass&);

struct Passes {
  PassFunction complex_to_complex, real_to_complex, complex_to_real;
};

// T: float or double, each in an object file of its own.
namespace baseline {
template <class T>
const Passes& passes();
}
namespace avx2 {
template <class T>
const Passes& passes();
}
namespace avx512 {
template <class T>
const Passes& passes();
}

}  // namespace tenon::fft
