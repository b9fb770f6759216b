// SPDX-License-Identifier: Apache-2.0
#include "runtime/prelude.hpp"

namespace gpu {
namespace {

// Both vendors' compilers take C++, with the same names for the thread model and for atomic
// operations. float16 is converted with integer arithmetic, which needs no header of the vendor.
constexpr char kText[] = R"(
typedef signed char tk_i8; typedef short tk_i16; typedef int tk_i32; typedef long long tk_i64;
typedef unsigned char tk_u8; typedef unsigned short tk_u16; typedef unsigned int tk_u32;
typedef unsigned long long tk_u64;
typedef float tk_f32; typedef double tk_f64;

#define TK_KERNEL extern "C" __global__
#define TK_FUNCTION static __device__
#define TK_GLOBAL
#define TK_LOCAL __shared__
#define TK_CONSTANT static __constant__
#define TK_ALIGNED(bytes) alignas(bytes)
#define TK_BUFFER(type, name) void *tk_start_##name
#define TK_BIND(type, name) type *name = (type *)tk_start_##name

static __device__ inline tk_i64 tk_local_id(int d) {
  return d == 0 ? threadIdx.x : d == 1 ? threadIdx.y : threadIdx.z;
}
static __device__ inline tk_i64 tk_group_id(int d) {
  return d == 0 ? blockIdx.x : d == 1 ? blockIdx.y : blockIdx.z;
}
static __device__ inline tk_i64 tk_local_size(int d) {
  return d == 0 ? blockDim.x : d == 1 ? blockDim.y : blockDim.z;
}
static __device__ inline tk_i64 tk_group_count(int d) {
  return d == 0 ? gridDim.x : d == 1 ? gridDim.y : gridDim.z;
}
static __device__ inline tk_i64 tk_global_id(int d) {
  return tk_group_id(d) * tk_local_size(d) + tk_local_id(d);
}
static __device__ inline tk_i64 tk_global_size(int d) {
  return tk_group_count(d) * tk_local_size(d);
}
#define tk_barrier() __syncthreads()

// A union of two types has the bits of both in these compilers.
#define TK_SAME_BITS(name, from, to)                 \
  static __device__ inline to name(from value) {     \
    union { from before; to after; } bits;           \
    bits.before = value;                             \
    return bits.after;                               \
  }
TK_SAME_BITS(tk_bits_f32, tk_u32, tk_f32)
TK_SAME_BITS(tk_f32_bits, tk_f32, tk_u32)
TK_SAME_BITS(tk_bits_f64, tk_u64, tk_f64)
TK_SAME_BITS(tk_f64_bits, tk_f64, tk_u64)

// The same number by an operation that no multiplication and addition are fused across. NVIDIA's assembler fuses them
// wherever it sees through what lies between, so there the bits are combined with a zero that is known at run time
// alone: launches of kernels that use this have a grid of one layer.
template <class T>
static __device__ inline T tk_separate(T x) { return x; }
#if defined(__CUDACC_RTC__)
static __device__ inline tk_f32 tk_separate(tk_f32 x) {
  return tk_bits_f32(tk_f32_bits(x) ^ (gridDim.z - 1));
}
static __device__ inline tk_f64 tk_separate(tk_f64 x) {
  return tk_bits_f64(tk_f64_bits(x) ^ (tk_u64)(gridDim.z - 1));
}
#elif defined(__AMDGCN__)
static __device__ inline tk_f32 tk_separate(tk_f32 x) { asm("" : "+v"(x)); return x; }
static __device__ inline tk_f64 tk_separate(tk_f64 x) { asm("" : "+v"(x)); return x; }
#elif defined(__x86_64__)
static __device__ inline tk_f32 tk_separate(tk_f32 x) { asm("" : "+x"(x)); return x; }
static __device__ inline tk_f64 tk_separate(tk_f64 x) { asm("" : "+x"(x)); return x; }
#endif
#define TK_SEPARATE(x) tk_separate(x)

#if defined(__CUDA_ARCH__) && defined(__EDG__) /* NVIDIA's own compiler, which takes PTX */
static __device__ inline tk_f32 tk_f16_to_f32(tk_u16 half_bits) {
  tk_f32 value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half_bits));
  return value;
}
static __device__ inline tk_u16 tk_f32_to_f16(tk_f32 value) {
  tk_u16 half_bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half_bits) : "f"(value));
  return half_bits;
}
#if __CUDA_ARCH__ >= 800
static __device__ inline tk_u16 tk_f32_to_bf16(tk_f32 value) {
  tk_u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#define TK_F32_TO_BF16(value) tk_f32_to_bf16(value)
#endif
#else
static __device__ inline tk_f32 tk_f16_to_f32(tk_u16 half_bits) {
  tk_u32 sign = (tk_u32)(half_bits & 0x8000u) << 16, rest = half_bits & 0x7fffu;
  if (rest >= 0x7c00u) return tk_bits_f32(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  // The exponent's bias differs by 112. A multiplication by 2^112 also normalizes subnormals.
  return tk_bits_f32(sign | tk_f32_bits(tk_bits_f32(rest << 13) * tk_bits_f32(239u << 23)));
}
static __device__ inline tk_u16 tk_f32_to_f16(tk_f32 value) {
  tk_u32 bits = tk_f32_bits(value), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return (tk_u16)(sign | 0x7e00u | (rest >> 13 & 0x3ffu));  // NaN
  if (rest >= 0x477ff000u) return (tk_u16)(sign | 0x7c00u);  // rounds to infinity
  if (rest < 0x38800000u) {  // subnormal: the addition of 0.5 rounds to a multiple of 2^-24
    tk_u32 sum = tk_f32_bits(tk_bits_f32(rest) + 0.5f);
    return (tk_u16)(sign | (sum - 0x3f000000u));
  }
  rest += 0xfffu + (rest >> 13 & 1u);  // to nearest even
  return (tk_u16)(sign | (rest - 0x38000000u) >> 13);
}
#endif

static __device__ inline tk_i32 tk_atomic_add_i32(tk_i32 *p, tk_i32 v) { return atomicAdd(p, v); }
static __device__ inline tk_u32 tk_atomic_add_u32(tk_u32 *p, tk_u32 v) { return atomicAdd(p, v); }
static __device__ inline tk_f32 tk_atomic_add_f32(tk_f32 *p, tk_f32 v) { return atomicAdd(p, v); }
static __device__ inline tk_i32 tk_atomic_max_i32(tk_i32 *p, tk_i32 v) { return atomicMax(p, v); }
static __device__ inline tk_u32 tk_atomic_max_u32(tk_u32 *p, tk_u32 v) { return atomicMax(p, v); }
static __device__ inline tk_i32 tk_atomic_min_i32(tk_i32 *p, tk_i32 v) { return atomicMin(p, v); }
static __device__ inline tk_u32 tk_atomic_min_u32(tk_u32 *p, tk_u32 v) { return atomicMin(p, v); }
static __device__ inline tk_u32 tk_atomic_cas_u32(tk_u32 *p, tk_u32 expected, tk_u32 desired) {
  return atomicCAS(p, expected, desired);
}
)";

}  // namespace

const char* prelude() { return kText; }

}  // namespace gpu
