// SPDX-License-Identifier: Apache-2.0
// Matrix products of 16-bit numbers by a warp, in registers (PTX ISA, "Warp Level Matrix Instructions"),
// and the copies that feed them. Needs compute capability 8.0. BFLOAT16 chooses the type; else it is float16.
//
// mma_16x8x16 multiplies A [16, 16] and B [16, 8]. With row = lane / 4 and pair = lane % 4 * 2, a lane holds
//   A: (row, pair), (row + 8, pair), (row, pair + 8), (row + 8, pair + 8), two neighbouring columns in each register,
//   B: (pair, row), (pair + 8, row), two neighbouring rows in each register,
//   C: (row, pair), (row, pair + 1), (row + 8, pair), (row + 8, pair + 1).
typedef tk_u16 Half;

#ifdef BFLOAT16
#define MMA_TYPE "bf16"
#else
#define MMA_TYPE "f16"
#endif

static __device__ inline void mma_16x8x16(float (&c)[4], const tk_u32 (&a)[4], tk_u32 b0, tk_u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ inline tk_u32 pack(float low, float high) {
  tk_u32 packed;
#ifdef BFLOAT16
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
#else
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
#endif
  return packed;
}

static __device__ inline float widen(Half x) {
#ifdef BFLOAT16
  return __uint_as_float((tk_u32)x << 16);
#else
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
#endif
}

static __device__ inline tk_u32 shared_address(const void *p) {
  return (tk_u32)__cvta_generic_to_shared(p);
}

// Four 8 x 8 matrices, whose rows lane i points to: of matrix i / 8, row i % 8.
static __device__ inline void load_matrices(tk_u32 (&r)[4], const Half *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}
static __device__ inline void load_matrices_transposed(tk_u32 (&r)[4], const Half *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}

// 16 bytes to shared memory, of which the last `16 - bytes` are zeros.
static __device__ inline void copy_async(Half *to, const Half *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes));
}
static __device__ inline void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int Pending>
static __device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending));
}

static __device__ inline float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
