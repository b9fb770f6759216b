// SPDX-License-Identifier: Apache-2.0
// y[n, c, h, w] += bias[c], which MIOpen offers for float32 and float16 alone. BITS is 32 for float32, 16 for float16, and -16
// for bfloat16.
#if BITS == 32
typedef tk_f32 Element;
static __device__ inline tk_f32 load(Element x) { return x; }
static __device__ inline Element store(tk_f32 x) { return x; }
#elif BITS == 16
typedef tk_u16 Element;
static __device__ inline tk_f32 load(Element x) { return tk_f16_to_f32(x); }
static __device__ inline Element store(tk_f32 x) { return tk_f32_to_f16(x); }
#else
typedef tk_u16 Element;
static __device__ inline tk_f32 load(Element x) { return tk_bits_f32((tk_u32)x << 16); }
static __device__ inline Element store(tk_f32 x) {
  const tk_u32 bits = tk_f32_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (Element)(bits >> 16 | 0x40u);  // NaN stays one
  return (Element)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);                  // to nearest even
}
#endif

// An image is one channel's plane.
TK_KERNEL void tenon_add_bias(Element *y, const Element *bias, tk_i64 image, tk_i64 channels, tk_i64 count) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0))
    y[index] = store(load(y[index]) + load(bias[index / image % channels]));
}
