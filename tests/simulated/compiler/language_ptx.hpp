// SPDX-License-Identifier: Apache-2.0
// Instructions of PTX: products of matrices by a warp, and copies to shared memory that are waited for. Inline assembly
// becomes calls of these (source.cpp), named as the instruction and with its operands in order. They follow the PTX
// ISA, "Warp Level Matrix Instructions" and "Data Movement and Conversion Instructions", and refuse what it
// does not allow.
#pragma once

// An address within the shared memory of the block.
inline size_t __cvta_generic_to_shared(const void* p) {
  const char* at = static_cast<const char*>(p);
  if (at < simulated_here->shared_begin || at >= simulated_here->shared_end)
    simulated_refuse("expected an address in the block's shared memory");
  return at - simulated_here->shared_begin;
}

namespace simulated::ptx {

inline char* shared_memory(unsigned address, unsigned bytes, const char* what) {
  char* at = simulated_here->shared_begin + address;
  if (address % bytes != 0 || at + bytes > simulated_here->shared_end) simulated_refuse(what);
  return at;
}

// What lanes post is followed by which instruction it is for.
constexpr unsigned kPosted = 56;
struct Post {
  alignas(8) char data[kPosted];
  unsigned instruction;
};
static_assert(sizeof(Post) <= kPostedBytes);

// Every lane of the warp runs the instruction together (".aligned").
template <class T>
void post(unsigned instruction, const T& value) {
  static_assert(sizeof(T) <= kPosted);
  if (simulated_active_lanes() != kAllLanes)
    simulated_refuse(
        "expected all lanes of the warp at an instruction that is .aligned; some have ended");
  Post posted = {};
  __builtin_memcpy(posted.data, &value, sizeof value);
  posted.instruction = instruction;
  simulated_warp_barrier(kAllLanes, &posted, sizeof posted);
}
template <class T>
const T& posted_by(unsigned lane, unsigned instruction) {
  const Post& posted = *static_cast<const Post*>(simulated_warp_value(lane));
  if (posted.instruction != instruction)
    simulated_refuse("expected all lanes of the warp at the same instruction that is .aligned");
  return *reinterpret_cast<const T*>(posted.data);
}

// ---- numbers ----
inline float from_f16(unsigned short x) { return (float)bits<_Float16>(x); }
inline unsigned short to_f16(float x) { return bits<unsigned short>((_Float16)x); }
inline float from_bf16(unsigned short x) { return bits<float>((unsigned)x << 16); }
inline unsigned short to_bf16(float x) {
  const unsigned all = bits<unsigned>(x);
  if (x != x) return 0x7fff;
  return (unsigned short)((all + 0x7fff + (all >> 16 & 1)) >> 16);
}
inline void cvt_f32_f16(float& d, unsigned short x) { d = from_f16(x); }
inline void cvt_rn_f16x2_f32(unsigned& d, float high, float low) {
  d = (unsigned)to_f16(high) << 16 | to_f16(low);
}
inline void cvt_rn_bf16x2_f32(unsigned& d, float high, float low) {
  d = (unsigned)to_bf16(high) << 16 | to_bf16(low);
}
inline void ex2_approx_ftz_f32(float& d, float x) {
  const auto flushed = [](float y) { return y < 0x1p-126f && y > -0x1p-126f ? 0.0f : y; };
  d = flushed(exp2f(flushed(x)));
}

// ---- matrices ----
// Lane 8 * m + i has the address of row i of matrix m. Afterwards it has of matrix m the elements (lane / 4, lane % 4 * 2)
// and the one to its right, or of the transposed matrix.
struct Row {
  unsigned short elements[8];
};
template <bool Transposed>
void load_matrices(unsigned& d0, unsigned& d1, unsigned& d2, unsigned& d3, unsigned address) {
  constexpr unsigned kInstruction = Transposed ? 2 : 1;
  Row own;
  __builtin_memcpy(
      &own,
      shared_memory(address, 16,
                    "ldmatrix: expected a row at a multiple of 16 bytes within the shared memory"),
      16);
  post(kInstruction, own);
  const unsigned lane = simulated_lane(), first = lane / 4, pair = lane % 4 * 2;
  unsigned* const d[] = {&d0, &d1, &d2, &d3};
  for (unsigned m = 0; m < 4; ++m) {
    unsigned both[2];
    for (unsigned i = 0; i < 2; ++i)
      both[i] = Transposed ? posted_by<Row>(8 * m + pair + i, kInstruction).elements[first]
                           : posted_by<Row>(8 * m + first, kInstruction).elements[pair + i];
    *d[m] = both[1] << 16 | both[0];
  }
}
inline void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned& d0, unsigned& d1, unsigned& d2,
                                                     unsigned& d3, unsigned address) {
  load_matrices<false>(d0, d1, d2, d3, address);
}
inline void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned& d0, unsigned& d1, unsigned& d2,
                                                           unsigned& d3, unsigned address) {
  load_matrices<true>(d0, d1, d2, d3, address);
}

// D = A B + C, of 16 x 16, 16 x 8 and 16 x 8 numbers. The sum of a product is rounded once, which no hardware promises.
struct Factors {
  float a[8], b[4];
};
template <float (*Value)(unsigned short)>
void multiply(float* const (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
              const float (&c)[4]) {
  constexpr unsigned kInstruction = 3;
  Factors own;
  for (int i = 0; i < 4; ++i)
    for (int half = 0; half < 2; ++half)
      own.a[2 * i + half] = Value((unsigned short)(a[i] >> 16 * half));
  for (int i = 0; i < 2; ++i)
    for (int half = 0; half < 2; ++half)
      own.b[2 * i + half] = Value((unsigned short)(b[i] >> 16 * half));
  post(kInstruction, own);
  const unsigned lane = simulated_lane(), row = lane / 4, column = lane % 4 * 2;
  const Factors *rows[4], *columns[2][4];
  for (unsigned i = 0; i < 4; ++i) {
    rows[i] = &posted_by<Factors>(4 * row + i, kInstruction);
    for (unsigned j = 0; j < 2; ++j)
      columns[j][i] = &posted_by<Factors>(4 * (column + j) + i, kInstruction);
  }
  for (unsigned i = 0; i < 4; ++i) {
    double sum = c[i];
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned part = k / 8, from = k % 8 / 2;
      sum += (double)rows[from]->a[4 * part + 2 * (i / 2) + k % 2] *
             columns[i % 2][from]->b[2 * part + k % 2];
    }
    *d[i] = (float)sum;
  }
}
inline void mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float& d0, float& d1, float& d2,
                                                              float& d3, unsigned a0, unsigned a1,
                                                              unsigned a2, unsigned a3, unsigned b0,
                                                              unsigned b1, float c0, float c1,
                                                              float c2, float c3) {
  multiply<from_f16>({&d0, &d1, &d2, &d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3});
}
inline void mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(float& d0, float& d1, float& d2,
                                                                float& d3, unsigned a0, unsigned a1,
                                                                unsigned a2, unsigned a3,
                                                                unsigned b0, unsigned b1, float c0,
                                                                float c1, float c2, float c3) {
  multiply<from_bf16>({&d0, &d1, &d2, &d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3});
}

// ---- copies ----
inline void cp_async_cg_shared_global(unsigned to, const void* from, int size, int bytes) {
  char* at =
      shared_memory(to, 16, "cp.async: expected a multiple of 16 bytes within the shared memory");
  if ((uintptr_t)from % 16 != 0)
    simulated_refuse("cp.async: expected a source at a multiple of 16 bytes");
  if (size != 16 || bytes < 0 || bytes > size)
    simulated_refuse("cp.async: expected to copy 16 bytes from at most as many");
  simulated_copy_later(at, from, bytes, size);
}
inline void cp_async_commit_group() { simulated_commit_copies(); }
inline void cp_async_wait_group(int pending) { simulated_wait_for_copies(pending); }

}  // namespace simulated::ptx
