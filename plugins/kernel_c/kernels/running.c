/* SPDX-License-Identifier: Apache-2.0 */
/* Along one axis of [outer, length, inner], one work item for each outer and inner index: running maxima
 * or minima with the index of the last element that has them (with WINS), or first-order linear
 * recurrences. A is the type of what is compared or summed. */
#ifdef WINS
TK_KERNEL void KERNEL(TK_BUFFER(IN_STORAGE, x), TK_BUFFER(OUT_STORAGE, values),
                      TK_BUFFER(tk_i64, indices), tk_i64 length, tk_i64 inner, tk_i64 lanes) {
  TK_BIND(IN_STORAGE, x);
  TK_BIND(OUT_STORAGE, values);
  TK_BIND(tk_i64, indices);
  FOR_EACH(lane, lanes) {
    tk_i64 i = lane / inner * length * inner + lane % inner, last = 0;
    A best = (A)IN_LOAD(x[i]);
    for (tk_i64 k = 0; k < length; ++k) {
      const A value = (A)IN_LOAD(x[i]);
      /* From the first NaN on, NaN is the result: no number wins against it. */
      if (value WINS best || value != value) {
        best = value;
        last = k;
      }
      values[i] = OUT_STORE(OUT_CONVERT(best));
      indices[i] = last;
      i += inner;
    }
  }
}
#else
TK_KERNEL void KERNEL(TK_BUFFER(IN_STORAGE, a), TK_BUFFER(IN_STORAGE, b),
                      TK_BUFFER(OUT_STORAGE, out), tk_i64 length, tk_i64 inner, tk_i32 reverse,
                      tk_i64 lanes) {
  TK_BIND(IN_STORAGE, a);
  TK_BIND(IN_STORAGE, b);
  TK_BIND(OUT_STORAGE, out);
  FOR_EACH(lane, lanes) {
    tk_i64 i = lane / inner * length * inner + lane % inner;
    if (reverse) i += (length - 1) * inner;
    A sum = (A)IN_LOAD(b[i]);
    for (tk_i64 k = 0; k < length; ++k) {
      if (k > 0) sum = (A)IN_LOAD(a[i]) * sum + (A)IN_LOAD(b[i]);
      out[i] = OUT_STORE(OUT_CONVERT(sum));
      i += reverse ? -inner : inner;
    }
  }
}
#endif
