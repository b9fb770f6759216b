/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks picked and placed: x is [outer, length, inner], linear are along its middle axis. */
#if defined(PICK) /* out[o, n, i] = x[o, linear[n], i] */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(tk_i64, linear), TK_BUFFER(STORAGE, out),
                      STORAGE zero, tk_i64 length, tk_i64 inner, tk_i64 count, tk_i64 outer) {
  TK_BIND(STORAGE, x);
  TK_BIND(tk_i64, linear);
  TK_BIND(STORAGE, out);
#ifdef HOST_LIKE
  FOR_EACH(row, outer * count) {
    const tk_i64 place = linear[row % count], from = (row / count * length + place) * inner;
    for (tk_i64 i = 0; i < inner; ++i) out[row * inner + i] = place < 0 ? zero : x[from + i];
  }
#else
  FOR_EACH(e, outer * count * inner) {
    const tk_i64 row = e / inner, place = linear[row % count];
    out[e] = place < 0 ? zero : x[(row / count * length + place) * inner + e % inner];
  }
#endif
}

#elif defined(PUT) /* out[o, linear[n], i] = or += value[o, n, i], which has any strides */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, out), TK_BUFFER(tk_i64, linear),
#ifdef NUMBER
                      STORAGE value,
#else
                      TK_BUFFER(STORAGE, value),
#endif
                      tk_layout shape, tk_layout strides, tk_i64 length, tk_i64 inner, tk_i64 count,
                      tk_i64 outer) {
  TK_BIND(STORAGE, out);
  TK_BIND(tk_i64, linear);
#ifdef NUMBER
#define VALUE(o, n, i) value
#else
  TK_BIND(STORAGE, value);
#define VALUE(o, n, i) value[layout_offset(((o)*count + (n)) * inner + (i), RANK, shape, strides)]
#endif
#if !defined(ADD)
  FOR_EACH(e, outer * count * inner) {
    const tk_i64 row = e / inner, i = e % inner, o = row / count, place = linear[row % count];
    if (place >= 0) out[(o * length + place) * inner + i] = VALUE(o, row % count, i);
  }
#elif defined(ATOMIC)
  FOR_EACH(e, outer * count * inner) {
    const tk_i64 row = e / inner, i = e % inner, o = row / count, place = linear[row % count];
    if (place >= 0) ATOMIC(&out[(o * length + place) * inner + i], VALUE(o, row % count, i));
  }
#elif defined(HOST_LIKE) /* linear may repeat: an item adds to its own lanes only, in order */
  const tk_i64 begin = share_begin(outer * inner), end = share_end(outer * inner);
  for (tk_i64 lane = begin; lane < end;) {
    const tk_i64 o = lane / inner, first = lane % inner;
    const tk_i64 last = end - o * inner < inner ? end - o * inner : inner;
    for (tk_i64 n = 0; n < count; ++n) {
      if (linear[n] < 0) continue;
      const tk_i64 row = (o * length + linear[n]) * inner;
      for (tk_i64 i = first; i < last; ++i)
        out[row + i] = STORE(CONVERT(k_add(LOAD(out[row + i]), LOAD(VALUE(o, n, i)))));
    }
    lane = o * inner + last;
  }
#else
  FOR_EACH(lane, outer * inner) {
    const tk_i64 o = lane / inner, i = lane % inner;
    for (tk_i64 n = 0; n < count; ++n) {
      const tk_i64 place = (o * length + linear[n]) * inner + i;
      if (linear[n] >= 0)
        out[place] = STORE(CONVERT(k_add(LOAD(out[place]), LOAD(VALUE(o, n, i)))));
    }
  }
#endif
}

#elif defined(GATHER) /* out[e] = x[where e is, but linear[e] along the axis] */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(tk_i64, linear), TK_BUFFER(STORAGE, out),
                      STORAGE zero, tk_layout shape, tk_layout strides, tk_i64 along,
                      tk_i64 count) {
  TK_BIND(STORAGE, x);
  TK_BIND(tk_i64, linear);
  TK_BIND(STORAGE, out);
  FOR_EACH(e, count) {
    const tk_i64 place = linear[e];
    out[e] = place < 0 ? zero : x[layout_offset(e, RANK, shape, strides) + place * along];
  }
}

#elif defined(SCATTER)
/* out[where e is, but linear[e] along the axis] = or += source[e * step] */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, out), TK_BUFFER(tk_i64, linear),
#ifdef NUMBER
                      STORAGE source,
#else
                      TK_BUFFER(STORAGE, source),
#endif
                      tk_layout shape, tk_layout strides, tk_i64 step, tk_i64 along, tk_i64 length,
                      tk_i64 inner, tk_i64 lanes) {
  TK_BIND(STORAGE, out);
  TK_BIND(tk_i64, linear);
#ifdef NUMBER
#define SOURCE(e) source
#else
  TK_BIND(STORAGE, source);
#define SOURCE(e) source[(e)*step]
#endif
#ifdef ATOMIC
  FOR_EACH(e, lanes * length)
  if (linear[e] >= 0)
    ATOMIC(&out[layout_offset(e, RANK, shape, strides) + linear[e] * along], SOURCE(e));
#else
  /* LinearIndices may repeat along the axis: one item goes along it, in order. */
  FOR_EACH(lane, lanes) {
    const tk_i64 first = lane / inner * length * inner + lane % inner;
    const tk_i64 base = layout_offset(first, RANK, shape, strides);
    for (tk_i64 k = 0; k < length; ++k) {
      const tk_i64 e = first + k * inner, place = base + linear[e] * along;
      if (linear[e] < 0) continue;
#ifdef ADD
      out[place] = STORE(CONVERT(k_add(LOAD(out[place]), LOAD(SOURCE(e)))));
#else
      out[place] = SOURCE(e);
#endif
    }
  }
#endif
}
#endif
