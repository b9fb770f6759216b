/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a layout of RANK axes, in stretches along the last axis, each of which is found once:
 *
 *   STRETCHES(i, count) {              element i begins `stretch` elements in a row
 *     tk_i64 rest = i;
 *     STRETCH_BEGIN
 *     ...unravel rest by `shape`...
 *     for (k < stretch) ...
 *   }
 *
 * On a processor a stretch ends with the row or the item's share; elsewhere it is one element. */
#ifdef HOST_LIKE
#define STRETCHES(i, count) \
  tk_i64 stretch;           \
  for (tk_i64 i = share_begin(count), i##_end = share_end(count); i < i##_end; i += stretch)
#define STRETCH_BEGIN                                     \
  stretch = shape.v[RANK - 1] - rest % shape.v[RANK - 1]; \
  if (stretch > i_end - i) stretch = i_end - i;
#else
#define STRETCHES(i, count) \
  const tk_i64 stretch = 1; \
  for (tk_i64 i = tk_global_id(0); i < (count); i += tk_global_size(0))
#define STRETCH_BEGIN
#endif
