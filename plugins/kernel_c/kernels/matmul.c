/* SPDX-License-Identifier: Apache-2.0 */
/* out[b] = x[b] * y[b] (+ bias), with any strides; BATCH_RANK axes of batches. */
#define PARAMETERS                                                                                 \
  TK_BUFFER(STORAGE, x), TK_BUFFER(STORAGE, y), TK_BUFFER(STORAGE, bias), TK_BUFFER(STORAGE, out), \
      tk_i64 m, tk_i64 n, tk_i64 k, tk_i64 x_row, tk_i64 x_column, tk_i64 y_row, tk_i64 y_column,  \
      tk_i64 bias_step, tk_layout batch_shape, tk_layout x_batch, tk_layout y_batch,               \
      tk_i64 batches
#define BIND              \
  TK_BIND(STORAGE, x);    \
  TK_BIND(STORAGE, y);    \
  TK_BIND(STORAGE, bias); \
  TK_BIND(STORAGE, out)
#define X(i, p) k_element(LOAD(x[x_base + (i)*x_row + (p)*x_column]))
#define Y(p, j) k_element(LOAD(y[y_base + (p)*y_row + (j)*y_column]))
#ifdef BIAS
#define RESULT(i, j, sum) \
  out[(b * m + (i)) * n + (j)] = STORE(CONVERT(k_add(sum, k_element(LOAD(bias[(j)*bias_step])))))
#else
#define RESULT(i, j, sum) out[(b * m + (i)) * n + (j)] = STORE(CONVERT(sum))
#endif

#if defined(DOTS) /* few columns: each output is a sum of its own */
TK_KERNEL void KERNEL(PARAMETERS) {
  BIND;
  FOR_EACH(job, batches * m * n) {
    const tk_i64 b = job / (m * n), i = job / n % m, j = job % n;
    const tk_i64 x_base = layout_offset(b, BATCH_RANK, batch_shape, x_batch);
    const tk_i64 y_base = layout_offset(b, BATCH_RANK, batch_shape, y_batch);
    T sums[8];
    for (int l = 0; l < 8; ++l) sums[l] = k_of(0);
    tk_i64 p = 0;
    for (; p + 8 <= k; p += 8)
      for (int l = 0; l < 8; ++l) sums[l] = k_multiply_add(X(i, p + l), Y(p + l, j), sums[l]);
    for (; p < k; ++p) sums[0] = k_multiply_add(X(i, p), Y(p, j), sums[0]);
    for (int width = 4; width > 0; width /= 2)
      for (int l = 0; l < width; ++l) sums[l] = k_add(sums[l], sums[l + width]);
    RESULT(i, j, sums[0]);
  }
}

#elif defined(HOST_LIKE)
/* A job is a block of outputs, whose sums stay in the first cache together with a block of y: the
 * inner loop runs along the columns, for two rows and four terms at once. */
#define ROWS 32
#define COLUMNS 64
#define TERMS 64
#define FOUR_TERMS(a)                                  \
  k_multiply_add(a[3], block[p + 3][j],                \
                 k_multiply_add(a[2], block[p + 2][j], \
                                k_multiply_add(a[1], block[p + 1][j], k_mul(a[0], block[p][j]))))
TK_KERNEL void KERNEL(PARAMETERS) {
  BIND;
  const tk_i64 down = (m + ROWS - 1) / ROWS, across = (n + COLUMNS - 1) / COLUMNS;
  T sums[ROWS][COLUMNS], block[TERMS][COLUMNS];
  FOR_EACH(job, batches * down * across) {
    const tk_i64 b = job / (down * across);
    const tk_i64 i0 = job / across % down * ROWS, j0 = job % across * COLUMNS;
    const int rows = m - i0 < ROWS ? (int)(m - i0) : ROWS;
    const int columns = n - j0 < COLUMNS ? (int)(n - j0) : COLUMNS;
    const tk_i64 x_base = layout_offset(b, BATCH_RANK, batch_shape, x_batch);
    const tk_i64 y_base = layout_offset(b, BATCH_RANK, batch_shape, y_batch);
    for (int i = 0; i < ROWS; ++i)
      for (int j = 0; j < COLUMNS; ++j) sums[i][j] = k_of(0);
    for (tk_i64 p0 = 0; p0 < k; p0 += TERMS) {
      const int terms = k - p0 < TERMS ? (int)(k - p0) : TERMS;
      if (y_column == 1) {
        for (int p = 0; p < terms; ++p)
          for (int j = 0; j < columns; ++j)
            block[p][j] = k_element(LOAD(y[y_base + (p0 + p) * y_row + j0 + j]));
      } else {
        for (int j = 0; j < columns; ++j)
          for (int p = 0; p < terms; ++p) block[p][j] = Y(p0 + p, j0 + j);
      }
      for (int p = 0; p < terms; ++p)
        for (int j = columns; j < COLUMNS; ++j) block[p][j] = k_of(0);
      for (int p = terms; p < ((terms + 3) & ~3); ++p)
        for (int j = 0; j < COLUMNS; ++j) block[p][j] = k_of(0);
      for (int i = 0; i < rows; i += 2) {
        const tk_i64 upper = i0 + i, lower = i + 1 < rows ? upper + 1 : upper;
        for (int p = 0; p < terms; p += 4) {
          T a[4], c[4];
          for (int q = 0; q < 4; ++q) {
            const int inside = p + q < terms;
            a[q] = inside ? X(upper, p0 + p + q) : k_of(0);
            c[q] = inside ? X(lower, p0 + p + q) : k_of(0);
          }
          for (int j = 0; j < COLUMNS; ++j) {
            sums[i][j] = k_add(sums[i][j], FOUR_TERMS(a));
            sums[i + 1][j] = k_add(sums[i + 1][j], FOUR_TERMS(c));
          }
        }
      }
    }
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) RESULT(i0 + i, j0 + j, sums[i][j]);
  }
}

#else
/* Groups of SIDE * SIDE items, each with 4 * 4 outputs; blocks of x and y in local memory. */
#define BLOCK (SIDE * 4)
#define TERMS 16
TK_KERNEL void KERNEL(PARAMETERS) {
  TK_LOCAL T xs[TERMS][BLOCK + 1];
  TK_LOCAL T ys[TERMS][BLOCK + 1];
  BIND;
  const tk_i64 down = (m + BLOCK - 1) / BLOCK, across = (n + BLOCK - 1) / BLOCK;
  const int item = (int)tk_local_id(0), row = item / SIDE, column = item % SIDE;
  for (tk_i64 job = tk_group_id(0); job < batches * down * across; job += tk_group_count(0)) {
    const tk_i64 b = job / (down * across);
    const tk_i64 i0 = job / across % down * BLOCK, j0 = job % across * BLOCK;
    const tk_i64 x_base = layout_offset(b, BATCH_RANK, batch_shape, x_batch);
    const tk_i64 y_base = layout_offset(b, BATCH_RANK, batch_shape, y_batch);
    T sums[4][4];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) sums[i][j] = k_of(0);
    for (tk_i64 p0 = 0; p0 < k; p0 += TERMS) {
      for (int at = item; at < TERMS * BLOCK; at += SIDE * SIDE) {
        /* Neighbouring items read along whichever axis is dense. */
        const int xp = x_column == 1 ? at % TERMS : at / BLOCK;
        const int xi = x_column == 1 ? at / TERMS : at % BLOCK;
        xs[xp][xi] = i0 + xi < m && p0 + xp < k ? X(i0 + xi, p0 + xp) : k_of(0);
        const int yp = y_column == 1 ? at / BLOCK : at % TERMS;
        const int yj = y_column == 1 ? at % BLOCK : at / TERMS;
        ys[yp][yj] = j0 + yj < n && p0 + yp < k ? Y(p0 + yp, j0 + yj) : k_of(0);
      }
      tk_barrier();
      for (int p = 0; p < TERMS; ++p) {
        T a[4], c[4];
        for (int q = 0; q < 4; ++q) {
          a[q] = xs[p][row + q * SIDE];
          c[q] = ys[p][column + q * SIDE];
        }
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) sums[i][j] = k_multiply_add(a[i], c[j], sums[i][j]);
      }
      tk_barrier();
    }
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j)
        if (i0 + row + i * SIDE < m && j0 + column + j * SIDE < n)
          RESULT(i0 + row + i * SIDE, j0 + column + j * SIDE, sums[i][j]);
  }
}
#endif
