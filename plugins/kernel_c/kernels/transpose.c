/* SPDX-License-Identifier: Apache-2.0 */
/* out[.., i, .., j] = x[.., i, .., j] where x is dense along i and out along j: by square tiles, so
 * that both are read and written in whole cache lines. RANK other axes. A group has SIDE * HEIGHT items. */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(STORAGE, out), tk_i64 rows, tk_i64 columns,
                      tk_i64 x_column, tk_i64 out_row, tk_layout shape, tk_layout s_x,
                      tk_layout s_out, tk_i64 count) {
#ifndef HOST_LIKE
  TK_LOCAL STORAGE tile[SIDE][SIDE + 1];
#endif
  TK_BIND(STORAGE, x);
  TK_BIND(STORAGE, out);
  const tk_i64 down = (rows + SIDE - 1) / SIDE, across = (columns + SIDE - 1) / SIDE;
#ifdef HOST_LIKE
  FOR_EACH(job, count * down * across) {
    const tk_i64 other = job / (down * across), i0 = job / across % down * SIDE,
                 j0 = job % across * SIDE;
    const tk_i64 from = layout_offset(other, RANK, shape, s_x) + i0 + j0 * x_column;
    const tk_i64 to = layout_offset(other, RANK, shape, s_out) + i0 * out_row + j0;
    const tk_i64 height = rows - i0 < SIDE ? rows - i0 : SIDE,
                 width = columns - j0 < SIDE ? columns - j0 : SIDE;
    for (tk_i64 i = 0; i < height; ++i)
      for (tk_i64 j = 0; j < width; ++j) out[to + i * out_row + j] = x[from + i + j * x_column];
  }
#else
  const int fast = (int)(tk_local_id(0) % SIDE), slow = (int)(tk_local_id(0) / SIDE);
  for (tk_i64 job = tk_group_id(0); job < count * down * across; job += tk_group_count(0)) {
    const tk_i64 other = job / (down * across), i0 = job / across % down * SIDE,
                 j0 = job % across * SIDE;
    const tk_i64 from = layout_offset(other, RANK, shape, s_x) + i0 + j0 * x_column;
    const tk_i64 to = layout_offset(other, RANK, shape, s_out) + i0 * out_row + j0;
    for (int j = slow; j < SIDE; j += HEIGHT)
      if (i0 + fast < rows && j0 + j < columns) tile[j][fast] = x[from + fast + j * x_column];
    tk_barrier();
    for (int i = slow; i < SIDE; i += HEIGHT)
      if (i0 + i < rows && j0 + fast < columns) out[to + i * out_row + fast] = tile[fast][i];
    tk_barrier();
  }
#endif
}
