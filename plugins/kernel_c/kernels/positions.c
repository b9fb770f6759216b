/* SPDX-License-Identifier: Apache-2.0 */
/* Positions given by the caller, made safe: linear[i] is where along an axis of `length`, or -1 for
 * a position outside, which reads zero and writes nothing. */
#define NORMALIZED(position)                                 \
  ((position) >= -length && (position) < length              \
       ? ((position) < 0 ? (position) + length : (position)) \
       : -1)
#ifdef UNSIGNED /* above int64's range it is as far outside as a negative one */
#define INDEX(i) (index[i] > (STORAGE)0x7fffffffffffffff ? -1 - length : (tk_i64)index[i])
#else
#define INDEX(i) ((tk_i64)index[i])
#endif

#if defined(CHECK) /* found[0]: is one outside? found[1]: the first that is. One work item. */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, index), TK_BUFFER(tk_i64, found), tk_i64 length,
                      tk_i64 count) {
  TK_BIND(STORAGE, index);
  TK_BIND(tk_i64, found);
  found[0] = 0;
  for (tk_i64 i = 0; i < count; ++i)
    if (NORMALIZED(INDEX(i)) < 0) {
      found[0] = 1;
      found[1] = (tk_i64)index[i];
      break;
    }
}
#else /* linear[i] = linear[i] * length + position, for the broadcast of several index tensors */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, index), TK_BUFFER(tk_i64, linear), tk_i64 length,
                      tk_i32 first, tk_layout shape, tk_layout strides, tk_i64 count) {
  TK_BIND(STORAGE, index);
  TK_BIND(tk_i64, linear);
  FOR_EACH(i, count) {
    const tk_i64 position = INDEX(layout_offset(i, RANK, shape, strides));
    const tk_i64 normalized = NORMALIZED(position), before = first ? 0 : linear[i];
    linear[i] = normalized < 0 || before < 0 ? -1 : before * length + normalized;
  }
}
#endif
