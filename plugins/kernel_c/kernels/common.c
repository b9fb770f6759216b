/* SPDX-License-Identifier: Apache-2.0 */
/* What every program begins with: element types in memory and in arithmetic, and how work items
 * share the elements of a launch. */

/* -- float16 and bfloat16 are stored as 16 bits and computed as float32 ---------------------- */
TK_FUNCTION tk_f32 load_f16(tk_u16 x) { return tk_f16_to_f32(x); }
TK_FUNCTION tk_u16 store_f16(tk_f32 x) { return tk_f32_to_f16(x); }
TK_FUNCTION tk_f32 load_bf16(tk_u16 x) { return tk_bits_f32((tk_u32)x << 16); }
TK_FUNCTION tk_u16 store_bf16(tk_f32 x) {
#ifdef TK_F32_TO_BF16
  return TK_F32_TO_BF16(x);
#else
  tk_u32 bits = tk_f32_bits(x);
  if (x != x) return (tk_u16)(bits >> 16 | 0x40u);
  return (tk_u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16); /* to nearest even */
#endif
}

/* -- alignment of a struct, for accesses of several elements; only a hint ---------------------- */
#ifndef TK_ALIGNED
#define TK_ALIGNED(bytes)
#endif

/* -- a value that compilers may not fuse with what is made of it, where the prelude can say so --- */
#ifndef TK_SEPARATE
#define TK_SEPARATE(x) (x)
#endif

/* -- sharing `count` elements. On a processor each item takes a stretch of neighbours; elsewhere
 *    neighbouring items take neighbouring elements, so that their accesses join. -------------- */
#ifdef HOST_LIKE
TK_FUNCTION tk_i64 share_begin(tk_i64 count) {
  tk_i64 share = (count + tk_global_size(0) - 1) / tk_global_size(0),
         begin = share * tk_global_id(0);
  return begin < count ? begin : count;
}
TK_FUNCTION tk_i64 share_end(tk_i64 count) {
  tk_i64 share = (count + tk_global_size(0) - 1) / tk_global_size(0),
         begin = share * tk_global_id(0);
  return begin + share < count ? begin + share : count;
}
#define FOR_EACH(i, count) \
  for (tk_i64 i = share_begin(count), i##_end = share_end(count); i < i##_end; ++i)
#else
#define FOR_EACH(i, count) for (tk_i64 i = tk_global_id(0); i < (count); i += tk_global_size(0))
#endif

/* Extents or strides, in elements: the most that one launch argument holds. */
typedef struct {
  tk_i64 v[8];
} tk_layout;

/* Where element `index` of a shape lies. */
TK_FUNCTION tk_i64 layout_offset(tk_i64 index, int rank, tk_layout shape, tk_layout strides) {
  tk_i64 place = 0;
  for (int d = rank - 1; d > 0; --d) {
    place += index % shape.v[d] * strides.v[d];
    index /= shape.v[d];
  }
  return place + index * strides.v[0];
}
