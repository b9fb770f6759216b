/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors made of numbers: out[i] from i alone. */
#if defined(MAKE_FULL)
TK_KERNEL void KERNEL(TK_BUFFER(OUT_STORAGE, out), OUT_STORAGE value, tk_i64 count) {
  TK_BIND(OUT_STORAGE, out);
  FOR_EACH(i, count) out[i] = value;
}

#elif defined( \
    MAKE_ARANGE) /* T is int64 or the widest floating type there is, RESULT(v) the number of it */
TK_KERNEL void KERNEL(TK_BUFFER(OUT_STORAGE, out), T first, T step, T last, tk_i64 last_index,
                      tk_i64 count) {
  TK_BIND(OUT_STORAGE, out);
  FOR_EACH(i, count) {
    T value = i == last_index ? last : (T)(first + (T)i * step);
    out[i] = OUT_STORE(OUT_CONVERT(RESULT(value)));
  }
}

#elif defined(MAKE_EYE)
TK_KERNEL void KERNEL(TK_BUFFER(OUT_STORAGE, out), OUT_STORAGE zero, OUT_STORAGE one,
                      tk_i64 columns, tk_i64 offset, tk_i64 count) {
  TK_BIND(OUT_STORAGE, out);
  FOR_EACH(i, count) out[i] = i % columns == i / columns + offset ? one : zero;
}
#endif
