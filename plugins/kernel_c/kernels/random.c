/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3" (SC 2011). A block of 128 bits serves four numbers, or two of the
 * wider types, as on every device of Tenon: element e takes its part of block e / 4 or e / 2. */
typedef struct {
  tk_u32 v[4];
} philox_block;
TK_FUNCTION philox_block philox(tk_u64 seed, tk_u64 block) {
  tk_u32 c0 = (tk_u32)block, c1 = (tk_u32)(block >> 32), c2 = 0, c3 = 0;
  tk_u32 k0 = (tk_u32)seed, k1 = (tk_u32)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const tk_u64 p0 = (tk_u64)0xd2511f53u * c0, p1 = (tk_u64)0xcd9e8d57u * c2;
    c0 = (tk_u32)(p1 >> 32) ^ c1 ^ k0;
    c1 = (tk_u32)p1;
    c2 = (tk_u32)(p0 >> 32) ^ c3 ^ k1;
    c3 = (tk_u32)p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  philox_block result = {{c0, c1, c2, c3}};
  return result;
}

/* WIDE is the type numbers are computed in: float64 where there is one. */
#define UNIT32(bits) ((WIDE)((tk_f32)((bits) >> 8) * tk_bits_f32(0x33800000u)))
#ifdef HAS_F64
#define UNIT64(low, high) \
  ((tk_f64)(((tk_u64)(high) << 32 | (low)) >> 11) * tk_bits_f64((tk_u64)0x3ca << 52))
#endif

#if defined(UNIFORM)
/* Rounding must not lift a number to the upper end. */
#define PARAMETERS WIDE low, WIDE width, WIDE scale, T last, tk_i32 bounded
#if PER_BLOCK == 2
#define PART(b, i) (scale * (low + width * UNIT64((b).v[2 * (i)], (b).v[2 * (i) + 1])))
#else
#define PART(b, i) ((T)(scale * (low + width * UNIT32((b).v[i]))))
#endif
#define NUMBER(b, i) (bounded && PART(b, i) > last ? last : PART(b, i))

#elif defined(NORMAL)
/* Box and Muller: two uniform numbers, the first not 0, make two normal ones. */
#define PARAMETERS WIDE mean, WIDE deviation, WIDE two_pi
TK_FUNCTION WIDE normal_part(WIDE u, WIDE angle, int second, WIDE two_pi) {
  const WIDE radius = sqrt((WIDE)-2 * log((WIDE)1 - u)), turn = two_pi * angle;
  return radius * (second ? sin(turn) : cos(turn));
}
#if PER_BLOCK == 2
#define NUMBER(b, i)                                                                      \
  (mean + deviation * normal_part(UNIT64((b).v[0], (b).v[1]), UNIT64((b).v[2], (b).v[3]), \
                                  (i) == 1, two_pi))
#else
#define NUMBER(b, i)                                                                          \
  ((T)(mean + deviation * normal_part(UNIT32((b).v[(i) & ~1]), UNIT32((b).v[((i) & ~1) + 1]), \
                                      (i)&1, two_pi)))
#endif

#else
/* RANDINT: the high half of a 64-bit word times the range; its bias is at most range / 2^64. */
#define PARAMETERS tk_u64 low, tk_u64 range
TK_FUNCTION tk_u64 high_product(tk_u64 a, tk_u64 b) {
  const tk_u64 a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const tk_u64 middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}
#define NUMBER(b, i) (low + high_product((tk_u64)(b).v[2 * (i) + 1] << 32 | (b).v[2 * (i)], range))
#endif

TK_KERNEL void KERNEL(TK_BUFFER(OUT_STORAGE, out), PARAMETERS, tk_u64 seed, tk_u64 offset,
                      tk_i64 blocks, tk_i64 count) {
  TK_BIND(OUT_STORAGE, out);
  FOR_EACH(block, blocks) {
    const philox_block bits = philox(seed, offset + (tk_u64)block);
    const tk_i64 first = block * PER_BLOCK;
    for (int i = 0; i < PER_BLOCK; ++i)
      if (first + i < count) out[first + i] = OUT_STORE((OUT_COMPUTE)(NUMBER(bits, i)));
  }
}
