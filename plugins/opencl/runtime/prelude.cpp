// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

namespace opencl {
namespace {

// A buffer parameter is a handle's start and an offset, because a cl_mem cannot be passed from its
// middle; TK_BIND adds the two. NULL comes as start 0 and offset 0.
constexpr char kCommon[] = R"(
typedef char tk_i8; typedef short tk_i16; typedef int tk_i32; typedef long tk_i64;
typedef uchar tk_u8; typedef ushort tk_u16; typedef uint tk_u32; typedef ulong tk_u64;
typedef float tk_f32;

#define TK_KERNEL __kernel
#define TK_FUNCTION static
#define TK_GLOBAL __global
#define TK_LOCAL __local
#define TK_CONSTANT __constant
#define TK_BUFFER(type, name) __global char *tk_start_##name, ulong tk_offset_##name
#define TK_BIND(type, name) \
  __global type *name = (__global type *)(tk_start_##name + tk_offset_##name)

#define tk_global_id(d) ((tk_i64)get_global_id(d))
#define tk_local_id(d) ((tk_i64)get_local_id(d))
#define tk_group_id(d) ((tk_i64)get_group_id(d))
#define tk_global_size(d) ((tk_i64)get_global_size(d))
#define tk_local_size(d) ((tk_i64)get_local_size(d))
#define tk_group_count(d) ((tk_i64)get_num_groups(d))
#define tk_barrier() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

static tk_f32 tk_bits_f32(tk_u32 bits) { return as_float(bits); }
static tk_u32 tk_f32_bits(tk_f32 value) { return as_uint(value); }
static tk_f32 tk_f16_to_f32(tk_u16 bits) { return vload_half(0, (const half *)&bits); }
static tk_u16 tk_f32_to_f16(tk_f32 value) {
  tk_u16 bits;
  vstore_half_rte(value, 0, (half *)&bits);
  return bits;
}

static tk_i32 tk_atomic_add_i32(volatile __global tk_i32 *p, tk_i32 v) { return atomic_add(p, v); }
static tk_u32 tk_atomic_add_u32(volatile __global tk_u32 *p, tk_u32 v) { return atomic_add(p, v); }
static tk_i32 tk_atomic_max_i32(volatile __global tk_i32 *p, tk_i32 v) { return atomic_max(p, v); }
static tk_u32 tk_atomic_max_u32(volatile __global tk_u32 *p, tk_u32 v) { return atomic_max(p, v); }
static tk_i32 tk_atomic_min_i32(volatile __global tk_i32 *p, tk_i32 v) { return atomic_min(p, v); }
static tk_u32 tk_atomic_min_u32(volatile __global tk_u32 *p, tk_u32 v) { return atomic_min(p, v); }
static tk_u32 tk_atomic_cas_u32(volatile __global tk_u32 *p, tk_u32 expected, tk_u32 desired) {
  return atomic_cmpxchg(p, expected, desired);
}
static tk_f32 tk_atomic_add_f32(volatile __global tk_f32 *p, tk_f32 v) {
  volatile __global tk_u32 *word = (volatile __global tk_u32 *)p;
  tk_u32 before = *word, seen;
  while ((seen = atomic_cmpxchg(word, before, as_uint(as_float(before) + v))) != before)
    before = seen;
  return as_float(before);
}
)";

constexpr char kFloat64[] = R"(
typedef double tk_f64;
static tk_f64 tk_bits_f64(tk_u64 bits) { return as_double(bits); }
static tk_u64 tk_f64_bits(tk_f64 value) { return as_ulong(value); }
)";

}  // namespace

std::string prelude(bool has_float64) {
  if (!has_float64) return kCommon;
  return std::string("#pragma OPENCL EXTENSION cl_khr_fp64 : enable") + kCommon + kFloat64;
}

}  // namespace opencl
