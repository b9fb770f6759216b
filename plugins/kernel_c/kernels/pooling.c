/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum and average over windows of images, [planes, height, width], and their gradients. */
typedef struct {
  tk_i64 height, width, rows, columns;
} pool_sizes; /* of the image, of the result */
typedef struct {
  tk_i32 extent[2], stride[2], padding[2], dilation[2];
} pool_window;

#if !defined(MAX_GRAD) && !defined(MAX_GRAD_ATOMIC) && !defined(ZEROS)
/* The share of one element in the average of window `i` along one axis, as a count of elements. */
TK_FUNCTION tk_i64 pool_extent(tk_i64 i, tk_i32 extent, tk_i32 stride, tk_i32 padding,
                               tk_i64 length) {
  const tk_i64 first = i * stride - padding, padded = length + padding;
#ifdef COUNT_PADDING
  return (first + extent < padded ? first + extent : padded) - first;
#else
  const tk_i64 end = first + extent < length ? first + extent : length,
               begin = first > 0 ? first : 0;
  return end > begin ? end - begin : 0;
#endif
}
#endif

#if defined(MAX)
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(STORAGE, values), TK_BUFFER(tk_i64, indices),
                      pool_sizes size, pool_window window, tk_i64 count) {
  TK_BIND(STORAGE, x);
  TK_BIND(STORAGE, values);
  TK_BIND(tk_i64, indices);
  FOR_EACH(e, count) {
    const tk_i64 plane = e / (size.rows * size.columns), base = plane * size.height * size.width;
    const tk_i64 top = e / size.columns % size.rows * window.stride[0] - window.padding[0];
    const tk_i64 left = e % size.columns * window.stride[1] - window.padding[1];
    T best = FINITE_LOWEST;
    tk_i64 place = -1;
    for (int i = 0; i < window.extent[0]; ++i) {
      const tk_i64 y = top + i * window.dilation[0];
      if (y < 0 || y >= size.height) continue;
      for (int j = 0; j < window.extent[1]; ++j) {
        const tk_i64 z = left + j * window.dilation[1];
        if (z < 0 || z >= size.width) continue;
        const T value = (T)LOAD(x[base + y * size.width + z]);
        if (place < 0 || value > best || (value != value && best == best)) {
          best = value;
          place = y * size.width + z;
        }
      }
    }
    values[e] = STORE((COMPUTE)best);
    indices[e] = place < 0 ? 0 : place; /* nothing but padding */
  }
}

#elif defined(ZEROS) /* what MAX_GRAD_ATOMIC adds to */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, out), tk_i64 count) {
  TK_BIND(STORAGE, out);
  FOR_EACH(i, count) out[i] = 0;
}

#elif defined(MAX_GRAD_ATOMIC)
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, grad), TK_BUFFER(tk_i64, indices), TK_BUFFER(STORAGE, out),
                      tk_i64 size, tk_i64 windows, tk_i64 planes) {
  TK_BIND(STORAGE, grad);
  TK_BIND(tk_i64, indices);
  TK_BIND(STORAGE, out);
  FOR_EACH(i, planes * windows) {
    const tk_i64 place = indices[i];
    if (place >= 0 && place < size) ATOMIC(&out[i / windows * size + place], grad[i]);
  }
}

#elif defined(MAX_GRAD) /* windows may share a pixel, so an item adds up a whole plane */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, grad), TK_BUFFER(tk_i64, indices), TK_BUFFER(STORAGE, out),
                      tk_i64 size, tk_i64 windows, tk_i64 planes) {
  TK_BIND(STORAGE, grad);
  TK_BIND(tk_i64, indices);
  TK_BIND(STORAGE, out);
  FOR_EACH(plane, planes) {
    for (tk_i64 i = 0; i < size; ++i) out[plane * size + i] = 0;
    for (tk_i64 i = 0; i < windows; ++i) {
      const tk_i64 place = indices[plane * windows + i];
      if (place >= 0 && place < size) out[plane * size + place] += grad[plane * windows + i];
    }
  }
}

#elif defined(AVERAGE)
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(STORAGE, out), pool_sizes size,
                      pool_window window, tk_i64 count) {
  TK_BIND(STORAGE, x);
  TK_BIND(STORAGE, out);
  FOR_EACH(e, count) {
    const tk_i64 plane = e / (size.rows * size.columns), base = plane * size.height * size.width;
    const tk_i64 row = e / size.columns % size.rows, column = e % size.columns;
    const tk_i64 top = row * window.stride[0] - window.padding[0];
    const tk_i64 left = column * window.stride[1] - window.padding[1];
    T sum = 0;
    for (tk_i64 y = top > 0 ? top : 0; y < top + window.extent[0] && y < size.height; ++y)
      for (tk_i64 z = left > 0 ? left : 0; z < left + window.extent[1] && z < size.width; ++z)
        sum += (T)LOAD(x[base + y * size.width + z]);
    const tk_i64 elements =
        pool_extent(row, window.extent[0], window.stride[0], window.padding[0], size.height) *
        pool_extent(column, window.extent[1], window.stride[1], window.padding[1], size.width);
    out[e] = STORE((COMPUTE)(sum * (1 / (T)(elements > 1 ? elements : 1))));
  }
}

#else /* AVERAGE_GRAD: a pixel gathers from the windows that hold it */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, grad), TK_BUFFER(STORAGE, out), pool_sizes size,
                      pool_window window, tk_i64 count) {
  TK_BIND(STORAGE, grad);
  TK_BIND(STORAGE, out);
  FOR_EACH(e, count) {
    const tk_i64 plane = e / (size.height * size.width);
    const tk_i64 y = e / size.width % size.height + window.padding[0],
                 z = e % size.width + window.padding[1];
    tk_i64 row = y < window.extent[0] ? 0 : (y - window.extent[0]) / window.stride[0] + 1;
    const tk_i64 first = z < window.extent[1] ? 0 : (z - window.extent[1]) / window.stride[1] + 1;
    T sum = 0;
    for (; row < size.rows && row * window.stride[0] <= y; ++row)
      for (tk_i64 column = first; column < size.columns && column * window.stride[1] <= z;
           ++column) {
        const tk_i64 elements =
            pool_extent(row, window.extent[0], window.stride[0], window.padding[0], size.height) *
            pool_extent(column, window.extent[1], window.stride[1], window.padding[1], size.width);
        sum += (T)LOAD(grad[(plane * size.rows + row) * size.columns + column]) *
               (1 / (T)(elements > 1 ? elements : 1));
      }
    out[e] = STORE((COMPUTE)sum);
  }
}
#endif
