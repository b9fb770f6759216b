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
/* Box and Muller: two uniform numbers, the first not 0, make two normal ones. All operations round in one way
 * on every device: none of the products is added to something, so that no compiler contracts them. The CPU's
 * plugin has the same in kernels/random/box_muller.hpp, with the polynomials explained. */
#if PER_BLOCK == 2
#define R tk_f64
#define BITS tk_i64
#define UNSIGNED tk_u64
#define AS_BITS(x) ((BITS)tk_f64_bits(x))
#define OF_BITS(x) tk_bits_f64((UNSIGNED)(x))
#define MANTISSA 52
#define SIGN 62
#define ULP 0x3ca
#define ROOT_OF_HALF 0x3fe6a09e667f3bcd
#else
#define R tk_f32
#define BITS tk_i32
#define UNSIGNED tk_u32
#define AS_BITS(x) ((BITS)tk_f32_bits(x))
#define OF_BITS(x) tk_bits_f32((UNSIGNED)(x))
#define MANTISSA 23
#define SIGN 30
#define ULP 103
#define ROOT_OF_HALF 0x3f3504f3
#endif
#define ONE ((BITS)1)
#define SIGNED_BY(x, bit) OF_BITS((UNSIGNED)AS_BITS(x) ^ ((UNSIGNED)((bit)&2) << SIGN))
#define PARAMETERS R mean, R deviation
/* The words without the bits that have no place in the mantissa. */
TK_FUNCTION R normal_part(BITS for_radius, BITS angle, int second) {
  const R ulp = OF_BITS((BITS)ULP << MANTISSA);
  const R v = (R)1 - (R)for_radius * ulp;
  const BITS bits = AS_BITS(v), exponent = (bits - ROOT_OF_HALF) >> MANTISSA;
  const R f = OF_BITS(bits - exponent * (ONE << MANTISSA)) - (R)1, e = (R)exponent;
  const BITS quarter = (angle + (ONE << (MANTISSA - 2))) >> (MANTISSA - 1);
  const R y = (R)(angle - quarter * (ONE << (MANTISSA - 1))) * (ulp * (R)4), square = y * y;
#if PER_BLOCK == 2
  const R s = f / ((R)2 + f), z = s * s;
  R p = 0.1308662614784010214;
  p = fma(z, p, 0.1326877313865688518);
  p = fma(z, p, 0.1538623970281465819);
  p = fma(z, p, 0.1818179564013290628);
  p = fma(z, p, 0.2222222239171391744);
  p = fma(z, p, 0.2857142857080361181);
  p = fma(z, p, 0.4000000000000087698);
  p = fma(z, p, 0.6666666666666666646);
  R logarithm = fma(s * z, p, (R)2 * s);
  logarithm = fma(e, 0.693147180559945286, fma(e, 2.31904681384629956e-17, logarithm));
  R sine = 5.633933781537853954e-8;
  sine = fma(square, sine, -3.598643352982309702e-6);
  sine = fma(square, sine, 0.0001604411507421909105);
  sine = fma(square, sine, -0.004681754132340975992);
  sine = fma(square, sine, 0.07969262624604300313);
  sine = fma(square, sine, -0.6459640975062443157);
  sine = fma(square, sine, 1.570796326794896614);
  R cosine = -6.329396344967423512e-9;
  cosine = fma(square, cosine, 4.710678405505227106e-7);
  cosine = fma(square, cosine, -0.00002520203902802917611);
  cosine = fma(square, cosine, 0.0009192602745468446187);
  cosine = fma(square, cosine, -0.02086348076334077252);
  cosine = fma(square, cosine, 0.2536695079010478232);
  cosine = fma(square, cosine, -1.233700550136169827);
#else
  R p = -0.07673641502f;
  p = fma(f, p, 0.1272267279f);
  p = fma(f, p, -0.1312755565f);
  p = fma(f, p, 0.1420485595f);
  p = fma(f, p, -0.1662664563f);
  p = fma(f, p, 0.2000123446f);
  p = fma(f, p, -0.2500078124f);
  p = fma(f, p, 0.3333333003f);
  p = fma(f, p, -0.4999999765f);
  R logarithm = fma(f * f, p, f);
  logarithm = fma(e, 0.693147182f, fma(e, -1.904654323e-9f, logarithm));
  R sine = -0.004602149212814176f;
  sine = fma(square, sine, 0.07968021764775541f);
  sine = fma(square, sine, -0.6459634776648118f);
  sine = fma(square, sine, 1.570796321953237f);
  R cosine = 0.0009067398984032666f;
  cosine = fma(square, cosine, -0.02086152834219997f);
  cosine = fma(square, cosine, 0.2536694103571085f);
  cosine = fma(square, cosine, -1.233700549374219f);
#endif
  sine = y * sine;
  cosine = fma(square, cosine, (R)1);
  const BITS turned = quarter + (second ? 0 : 1);
  const R part = ((quarter & 1) != 0) == (second != 0) ? cosine : sine;
  return sqrt((R)-2 * logarithm) * SIGNED_BY(part, turned);
}
#if PER_BLOCK == 2
#define MANTISSA_OF(b, i) ((BITS)(((tk_u64)(b).v[(i) + 1] << 32 | (b).v[i]) >> 11))
#define NUMBER(b, i) \
  fma(deviation, normal_part(MANTISSA_OF(b, 0), MANTISSA_OF(b, 2), (i) == 1), mean)
#else
#define NUMBER(b, i)                                                                            \
  ((T)fma(deviation,                                                                            \
          normal_part((BITS)((b).v[(i) & ~1] >> 8), (BITS)((b).v[((i) & ~1) + 1] >> 8), (i)&1), \
          mean))
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
