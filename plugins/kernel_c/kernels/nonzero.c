/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of the non-zero elements: shares are counted, the counts summed up, then each share
 * writes its rows behind those before it. The program defines IS_SET(i). */
#if defined(COUNT)
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(tk_i64, counts), tk_i64 share, tk_i64 shares,
                      tk_i64 count) {
  TK_BIND(STORAGE, x);
  TK_BIND(tk_i64, counts);
  FOR_EACH(s, shares) {
    const tk_i64 end = (s + 1) * share < count ? (s + 1) * share : count;
    tk_i64 found = 0;
    for (tk_i64 i = s * share; i < end; ++i) found += IS_SET(i);
    counts[s + 1] = found;
  }
}
#elif defined(SUM)
/* One work item: counts[s + 1] becomes what is before share s, counts[0] the total. */
TK_KERNEL void KERNEL(TK_BUFFER(tk_i64, counts), tk_i64 shares) {
  TK_BIND(tk_i64, counts);
  tk_i64 total = 0;
  for (tk_i64 s = 0; s < shares; ++s) {
    const tk_i64 found = counts[s + 1];
    counts[s + 1] = total;
    total += found;
  }
  counts[0] = total;
}
#else
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(tk_i64, counts), TK_BUFFER(tk_i64, out),
                      tk_layout shape, tk_layout more, tk_layout still_more, tk_layout most,
                      tk_i32 ndim, tk_i64 share, tk_i64 shares, tk_i64 count) {
  TK_BIND(STORAGE, x);
  TK_BIND(tk_i64, counts);
  TK_BIND(tk_i64, out);
  FOR_EACH(s, shares) {
    const tk_i64 end = (s + 1) * share < count ? (s + 1) * share : count;
    tk_i64 row = counts[s + 1];
    for (tk_i64 i = s * share; i < end; ++i) {
      if (!IS_SET(i)) continue;
      tk_i64 rest = i;
      for (int axis = ndim - 1; axis >= 0; --axis) {
        const tk_i64 extent = axis < 8    ? shape.v[axis]
                              : axis < 16 ? more.v[axis - 8]
                              : axis < 24 ? still_more.v[axis - 16]
                                          : most.v[axis - 24];
        out[row * ndim + axis] = rest % extent;
        rest /= extent;
      }
      ++row;
    }
  }
}
#endif
