// SPDX-License-Identifier: Apache-2.0
// The driver of generated elementwise kernels.
//
// tenon-codegen writes one loop per operator and element type, over dense memory. This driver
// handles broadcasting, strides, low precision dtypes and threads for all of them. Where the
// conversions would take longest, float16 and bfloat16 have loops of their own
// (simd/low_precision.hpp); otherwise blocks are converted to float32 and processed by its loop.
#pragma once

#include "dtypes.hpp"
#include "simd/low_precision.hpp"
#include "simd/vector_math.hpp"
#include "table.hpp"

#include <tenon/abi.h>

#include <type_traits>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

// `data` and `byte_strides` list the inputs, then the output. The output is dense, and so is every
// input, except that of two inputs one may have stride 0. The output may be an input.
using ElementwiseLoop = void (*)(char* const* data, const int64_t* byte_strides, int64_t n,
                                 const tenon_value* attributes);

struct ElementwiseKernel {
  const char* op;
  uint32_t inputs;       // Tensor parameters, which come first
  uint32_t dtype_input;  // the one whose dtype chooses the loop
  uint32_t cost;         // work for one element, in additions
  uint32_t promises;     // of TENON_KERNEL_*
  uint64_t dtype_mask;
  ElementwiseLoop loops[TENON_DTYPE_SLOTS];
};

tenon_status run_elementwise(const ElementwiseKernel& kernel, tenon_ctx* ctx,
                             const tenon_value* args, uint32_t nargs, tenon_value* outs,
                             tenon_err* err);

constexpr tenon_kernel_def elementwise_kernel(const ElementwiseKernel& kernel, tenon_boxed_fn run) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT | TENON_KERNEL_HOST_SCALARS |
                    TENON_KERNEL_BROADCAST | kernel.promises,
          .op = kernel.op,
          .dtype_mask = kernel.dtype_mask,
          .boxed = run};
}

// Attributes in loops: FLOAT parameters accept INT values.
inline double attribute_float(const tenon_value& value) {
  return value.tag == TENON_VALUE_FLOAT ? value.v.f : static_cast<double>(value.v.i);
}
inline int64_t attribute_int(const tenon_value& value) {
  return value.tag == TENON_VALUE_FLOAT ? static_cast<int64_t>(value.v.f) : value.v.i;
}
inline bool attribute_bool(const tenon_value& value) { return value.v.i != 0; }

// A bool next to wider elements is loaded as its byte and compared with 0: compilers vectorise this
// form of the condition.
template <bool kAsByte, class T>
inline T load(const T* from) {
  if constexpr (kAsByte && std::is_same_v<T, bool>) {
    return *reinterpret_cast<const uint8_t*>(from) != 0;
  } else {
    return *from;
  }
}

// out[i] = f(in[i]...). `ivdep` is correct although the output may be an input: each element is
// written after it was read.
template <class Out, class... In, class F>
inline void run_dense(Out* out, int64_t n, F f, const In*... in) {
  constexpr bool is_logic = std::is_same_v<Out, bool> && sizeof...(In) == 2;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(load<!is_logic>(in + i)...));
}

// Functions for which math/arrays.hpp has a loop over arrays.
template <class F, class Out, class... In>
concept HasArrayLoop = requires(F f, Out* out, const In*... in) {
  math::run_array(f, out, int64_t{}, in...);
};
template <class Out, class... In, HasArrayLoop<Out, In...> F>
inline void run_dense(Out* out, int64_t n, F f, const In*... in) {
  math::run_array(f, out, n, in...);
}

// Reads an operand of stride 0.
template <class T>
inline T repeated(const T* from) {
  return *from;
}

// Binds one argument of f.
template <class F, class Y>
inline auto with_second(F f, Y y) {
  return [f, y](auto x) { return f(x, y); };
}
template <class F, class X>
inline auto with_first(F f, X x) {
  return [f, x](auto y) { return f(x, y); };
}
#ifdef TENON_HAS_FMA
template <math::Division F, math::Float T>
inline math::DivisionBy<F, T> with_second(F, T y) {
  return {y};
}
template <math::Division F, math::Float T>
inline math::DivisionOf<F, T> with_first(F, T x) {
  return {x};
}
#endif
template <math::Float T>
inline math::PowerBy<T> with_second(math::call::pow, T y) {
  return {y};
}
template <math::Float T>
inline auto with_first(math::call::pow, T x) {
  return with_first(
      math::vectorized([](const auto& base, const auto& y) { return math::pow(base, y); }), x);
}

template <class Out, class In, class F>
inline void run_loop_of(char* const* data, const int64_t*, int64_t n, F f) {
  run_dense(reinterpret_cast<Out*>(data[1]), n, f, reinterpret_cast<const In*>(data[0]));
}

template <class Out, class X, class Y, class F>
inline void run_loop_of(char* const* data, const int64_t* byte_strides, int64_t n, F f) {
  const X* x = reinterpret_cast<const X*>(data[0]);
  const Y* y = reinterpret_cast<const Y*>(data[1]);
  Out* out = reinterpret_cast<Out*>(data[2]);
  if (byte_strides[1] == 0) {
    run_dense(out, n, with_second(f, repeated(y)), x);
  } else if (byte_strides[0] == 0) {
    run_dense(out, n, with_first(f, repeated(x)), y);
  } else {
    run_dense(out, n, f, x, y);
  }
}

template <class Out, class X, class Y, class Z, class... Rest, class F>
inline void run_loop_of(char* const* data, const int64_t*, int64_t n, F f) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    run_dense(reinterpret_cast<Out*>(data[3 + sizeof...(Rest)]), n, f,
              reinterpret_cast<const X*>(data[0]), reinterpret_cast<const Y*>(data[1]),
              reinterpret_cast<const Z*>(data[2]), reinterpret_cast<const Rest*>(data[3 + I])...);
  }
  (std::index_sequence_for<Rest...>());
}

// The entry point of generated loops.
template <class Out, class... In, class F>
inline void run_loop(char* const* data, const int64_t* byte_strides, int64_t n, F f) {
  run_loop_of<Out, In...>(data, byte_strides, n, f);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
