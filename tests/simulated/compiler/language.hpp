// SPDX-License-Identifier: Apache-2.0
// The device language of CUDA and HIP, as far as kernels use it, for the
// host's compiler. This header is precompiled and comes before every program; the standard library
// is not included, so a program's own names meet no others.
//
// Included with SIMULATED_WARP of 32 (CUDA) or 64 (HIP).
#pragma once

#include "kernel_table.hpp"

// ---- declarations ----
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
// `extern __shared__ T name[]` reaches the compiler as SIMULATED_DYNAMIC_SHARED(T, name).
#define SIMULATED_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(simulated_here->dynamic_shared)

using size_t = decltype(sizeof 0);
using ptrdiff_t = decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr));
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;
using intptr_t = long;
using uintptr_t = unsigned long;
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned;
using ulong = unsigned long;

// ---- vector types ----
#define SIMULATED_VECTOR(name, type)                                          \
  struct name##1 {                                                            \
    type x;                                                                   \
  };                                                                          \
  struct __align__(2 * sizeof(type)) name##2 {                                \
    type x, y;                                                                \
  };                                                                          \
  struct name##3 {                                                            \
    type x, y, z;                                                             \
  };                                                                          \
  struct __align__(4 * sizeof(type) < 16 ? 4 * sizeof(type) : 16) name##4 {   \
    type x, y, z, w;                                                          \
  };                                                                          \
  inline name##1 make_##name##1(type x) { return {x}; }                       \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
SIMULATED_VECTOR(char, signed char)
SIMULATED_VECTOR(uchar, unsigned char)
SIMULATED_VECTOR(short, short)
SIMULATED_VECTOR(ushort, unsigned short)
SIMULATED_VECTOR(int, int)
SIMULATED_VECTOR(uint, unsigned)
SIMULATED_VECTOR(long, long)
SIMULATED_VECTOR(ulong, unsigned long)
SIMULATED_VECTOR(longlong, long long)
SIMULATED_VECTOR(ulonglong, unsigned long long)
SIMULATED_VECTOR(float, float)
SIMULATED_VECTOR(double, double)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// ---- indices ----
#define threadIdx (simulated_here->thread)
#define blockIdx (simulated_here->block)
#define blockDim (simulated_here->block_dim)
#define gridDim (simulated_here->grid_dim)
#define warpSize SIMULATED_WARP

// ---- barriers, warps ----
inline void __syncthreads() { simulated_block_barrier(0); }
inline int __syncthreads_count(int predicate) {
  return static_cast<int>(simulated_block_barrier(predicate != 0));
}
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return __syncthreads_count(predicate == 0) == 0; }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __trap() { simulated_stop(719); }
inline void __brkpt() { simulated_stop(719); }
inline void __nanosleep(unsigned) {}

namespace simulated {
inline constexpr unsigned long long kAllLanes = SIMULATED_WARP == 64 ? ~0ull : 0xffffffffull;

// The value of the thread in lane `from`, or `own` if there is none.
template <class T>
T exchange(unsigned long long mask, T own, unsigned from) {
  static_assert(sizeof(T) <= 16);
  simulated_warp_barrier(mask, &own, sizeof own);
  if (!(mask >> from & 1)) return own;
  const void* posted = simulated_warp_value(from);
  return posted ? *static_cast<const T*>(posted) : own;
}
template <class T>
T shuffle(unsigned long long mask, T own, int source, int width) {
  const unsigned lane = simulated_lane(), begin = lane / width * width;
  return exchange(mask, own, begin + (static_cast<unsigned>(source) & (width - 1)));
}
template <class T>
T shuffle_up(unsigned long long mask, T own, unsigned delta, int width) {
  const unsigned lane = simulated_lane();
  return exchange(mask, own, lane % width < delta ? lane : lane - delta);
}
template <class T>
T shuffle_down(unsigned long long mask, T own, unsigned delta, int width) {
  const unsigned lane = simulated_lane();
  return exchange(mask, own, lane % width + delta >= unsigned(width) ? lane : lane + delta);
}
template <class T>
T shuffle_xor(unsigned long long mask, T own, int lanes, int width) {
  const unsigned lane = simulated_lane(), from = lane ^ lanes;
  return exchange(mask, own, from / width > lane / width ? lane : from);
}
inline unsigned long long ballot(unsigned long long mask, bool predicate) {
  unsigned long long result = 0;
  simulated_warp_barrier(mask, &predicate, sizeof predicate);
  for (unsigned lane = 0; lane < SIMULATED_WARP; ++lane) {
    const void* posted = mask >> lane & 1 ? simulated_warp_value(lane) : nullptr;
    if (posted && *static_cast<const bool*>(posted)) result |= 1ull << lane;
  }
  return result;
}
template <class T, class F>
T reduce(unsigned long long mask, T own, F combine) {
  simulated_warp_barrier(mask, &own, sizeof own);
  bool any = false;
  T total = own;
  for (unsigned lane = 0; lane < SIMULATED_WARP; ++lane) {
    const void* posted = mask >> lane & 1 ? simulated_warp_value(lane) : nullptr;
    if (!posted) continue;
    const T value = *static_cast<const T*>(posted);
    total = any ? combine(total, value) : value;
    any = true;
  }
  return total;
}
}  // namespace simulated

inline void __syncwarp(unsigned long long mask = simulated::kAllLanes) {
  simulated_warp_barrier(mask, "", 0);
}
inline unsigned long long simulated_active_mask() { return simulated_active_lanes(); }
template <class T>
T __shfl_sync(unsigned long long m, T v, int source, int width = SIMULATED_WARP) {
  return simulated::shuffle(m, v, source, width);
}
template <class T>
T __shfl_up_sync(unsigned long long m, T v, unsigned delta, int width = SIMULATED_WARP) {
  return simulated::shuffle_up(m, v, delta, width);
}
template <class T>
T __shfl_down_sync(unsigned long long m, T v, unsigned delta, int width = SIMULATED_WARP) {
  return simulated::shuffle_down(m, v, delta, width);
}
template <class T>
T __shfl_xor_sync(unsigned long long m, T v, int lanes, int width = SIMULATED_WARP) {
  return simulated::shuffle_xor(m, v, lanes, width);
}
inline int __all_sync(unsigned long long m, int p) { return simulated::ballot(m, !p) == 0; }
inline int __any_sync(unsigned long long m, int p) { return simulated::ballot(m, p) != 0; }
#define SIMULATED_REDUCE(name, expression)                                             \
  inline unsigned __reduce_##name##_sync(unsigned m, unsigned v) {                     \
    return simulated::reduce(m, v, [](unsigned a, unsigned b) { return expression; }); \
  }                                                                                    \
  inline int __reduce_##name##_sync(unsigned m, int v) {                               \
    return simulated::reduce(m, v, [](int a, int b) { return expression; });           \
  }
SIMULATED_REDUCE(add, a + b)
SIMULATED_REDUCE(min, a < b ? a : b)
SIMULATED_REDUCE(max, a > b ? a : b)
SIMULATED_REDUCE(and, a& b)
SIMULATED_REDUCE(or, a | b)
SIMULATED_REDUCE(xor, a ^ b)

#if SIMULATED_WARP == 32
inline unsigned __activemask() { return static_cast<unsigned>(simulated_active_lanes()); }
inline unsigned __ballot_sync(unsigned m, int p) {
  return static_cast<unsigned>(simulated::ballot(m, p));
}
#else  // HIP: no masks
inline unsigned long long __activemask() { return simulated_active_lanes(); }
inline unsigned long long __ballot_sync(unsigned long long m, int p) {
  return simulated::ballot(m, p);
}
inline unsigned long long __ballot(int p) { return simulated::ballot(simulated::kAllLanes, p); }
inline int __all(int p) { return __all_sync(simulated::kAllLanes, p); }
inline int __any(int p) { return __any_sync(simulated::kAllLanes, p); }
inline unsigned __lane_id() { return simulated_lane(); }
template <class T>
T __shfl(T v, int source, int width = SIMULATED_WARP) {
  return simulated::shuffle(simulated::kAllLanes, v, source, width);
}
template <class T>
T __shfl_up(T v, unsigned delta, int width = SIMULATED_WARP) {
  return simulated::shuffle_up(simulated::kAllLanes, v, delta, width);
}
template <class T>
T __shfl_down(T v, unsigned delta, int width = SIMULATED_WARP) {
  return simulated::shuffle_down(simulated::kAllLanes, v, delta, width);
}
template <class T>
T __shfl_xor(T v, int lanes, int width = SIMULATED_WARP) {
  return simulated::shuffle_xor(simulated::kAllLanes, v, lanes, width);
}
#endif

#include "language_atomics.hpp"
#include "language_math.hpp"
#include "language_numbers.hpp"
#if SIMULATED_WARP == 32
#include "language_ptx.hpp"
#endif

// ---- the table of a program's kernels ----
namespace simulated {
template <class F>
struct Parameters;
template <class... P>
struct Parameters<void (*)(P...)> {
  static constexpr unsigned kCount = sizeof...(P);
  static constexpr unsigned kBytes[kCount + 1] = {sizeof(P)..., 0};
  template <void (*F)(P...)>
  static void call(void** arguments) {
    spread<F>(arguments, typename Count<sizeof...(P)>::Result());
  }

 private:
  template <unsigned... I>
  struct Indices {};
  template <unsigned N, unsigned... I>
  struct Count : Count<N - 1, N - 1, I...> {};
  template <unsigned... I>
  struct Count<0, I...> {
    using Result = Indices<I...>;
  };
  template <void (*F)(P...), unsigned... I>
  static void spread([[maybe_unused]] void** arguments, Indices<I...>) {
    F(*static_cast<P*>(arguments[I])...);
  }
};
}  // namespace simulated
#define SIMULATED_KERNEL(function, name)                                \
  {                                                                     \
    name, &simulated::Parameters<decltype(&function)>::call<&function>, \
        simulated::Parameters<decltype(&function)>::kBytes,             \
        simulated::Parameters<decltype(&function)>::kCount              \
  }
