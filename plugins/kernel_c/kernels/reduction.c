/* SPDX-License-Identifier: Apache-2.0 */
/* One reduction over some axes. The program defines A (a partial result), map_element(x, place),
 * combine(a, b), finish(a, count), and initial() with HAS_INIT; KEPT_RANK and REDUCED_RANK. Without
 * HAS_INIT, combining with an element twice changes nothing.
 *
 * A job is a range of the elements of one output: range s of output o is job s * outputs + o, so that
 * neighbouring items read neighbouring outputs' elements. With PARTIAL, jobs write their A to be
 * combined by a second launch (COMBINE_PARTIALS). */

#ifdef GROUP
/* Leaves the combination of all items' totals in lanes[0], in the order of a tree. */
#define COMBINE_LANES(total)                                                   \
  lanes[lane] = total;                                                         \
  tk_barrier();                                                                \
  for (int width = GROUP / 2; width > 0; width /= 2) {                         \
    if (lane < width) lanes[lane] = combine(lanes[lane], lanes[lane + width]); \
    tk_barrier();                                                              \
  }
#endif

#ifdef COMBINE_PARTIALS
TK_KERNEL void KERNEL(TK_BUFFER(A, partials), TK_BUFFER(OUT_STORAGE, out), tk_i64 splits,
                      tk_i64 count, tk_i64 outputs) {
#ifdef GROUP
  TK_LOCAL A lanes[GROUP];
#endif
  TK_BIND(A, partials);
  TK_BIND(OUT_STORAGE, out);
#ifdef GROUP /* many ranges: one work group for each output */
  const tk_i64 lane = tk_local_id(0);
  for (tk_i64 o = tk_group_id(0); o < outputs; o += tk_group_count(0)) {
    tk_i64 s = lane;
#ifdef HAS_INIT
    A total = initial();
#else
    A total = partials[(s < splits ? s : 0) * outputs + o];
    s += GROUP;
#endif
    for (; s < splits; s += GROUP) total = combine(total, partials[s * outputs + o]);
    COMBINE_LANES(total)
    if (lane == 0) {
      total = lanes[0];
      out[o] = OUT_STORE(OUT_CONVERT(finish(total, count)));
    }
    tk_barrier();
  }
#else
  FOR_EACH(o, outputs) {
    A total = partials[o];
    for (tk_i64 s = 1; s < splits; ++s) total = combine(total, partials[s * outputs + o]);
    out[o] = OUT_STORE(OUT_CONVERT(finish(total, count)));
  }
#endif
}
#else

#ifdef UNIT_STEP
#define STEP 1
#else
#define STEP reduced_strides.v[REDUCED_RANK - 1]
#endif
#define ELEMENT(place) k_element(IN_LOAD(x[place]))

#ifdef PARTIAL
#define RESULT(o, job, a) partials[job] = (a)
#else
#define RESULT(o, job, a) out[o] = OUT_STORE(OUT_CONVERT(finish(a, count)))
#endif

#define KEPT_PLACE(o) layout_offset(o, KEPT_RANK, kept_shape, kept_strides)
#define REDUCED_PLACE(r) layout_offset(r, REDUCED_RANK, reduced_shape, reduced_strides)

TK_KERNEL void KERNEL(TK_BUFFER(IN_STORAGE, x),
#ifdef PARTIAL
                      TK_BUFFER(A, partials),
#else
                      TK_BUFFER(OUT_STORAGE, out),
#endif
                      tk_layout kept_shape, tk_layout kept_strides, tk_layout reduced_shape,
                      tk_layout reduced_strides, tk_i64 splits, tk_i64 count, tk_i64 outputs) {
#ifdef GROUP /* one work group for each job, a tree in local memory */
  TK_LOCAL A lanes[GROUP];
#endif
  TK_BIND(IN_STORAGE, x);
#ifdef PARTIAL
  TK_BIND(A, partials);
#else
  TK_BIND(OUT_STORAGE, out);
#endif
  const tk_i64 share = (count + splits - 1) / splits;

#if defined(GROUP)
  const tk_i64 lane = tk_local_id(0);
  for (tk_i64 job = tk_group_id(0); job < outputs * splits; job += tk_group_count(0)) {
    const tk_i64 o = job % outputs, begin = job / outputs * share;
    const tk_i64 end = begin + share < count ? begin + share : count;
    const tk_i64 base = KEPT_PLACE(o);
    tk_i64 r = begin + lane;
#ifdef HAS_INIT
    A total = initial();
#else
    /* Lanes beyond the end take an element twice over; what is first stays first. */
    A total = map_element(ELEMENT(base + REDUCED_PLACE(r < end ? r : begin)), r < end ? r : begin);
    r += GROUP;
#endif
    for (; r < end; r += GROUP)
      total = combine(total, map_element(ELEMENT(base + REDUCED_PLACE(r)), r));
    COMBINE_LANES(total)
    if (lane == 0) {
      total = lanes[0];
      RESULT(o, job, total);
    }
    tk_barrier();
  }

#elif defined(COLUMNS) /* neighbouring outputs together, for their elements are neighbours */
  const tk_i64 width = kept_shape.v[KEPT_RANK - 1], blocks = (width + COLUMNS - 1) / COLUMNS;
  FOR_EACH(job, outputs / width * blocks * splits) {
    const tk_i64 block = job / splits, first = block % blocks * COLUMNS;
    const tk_i64 o = block / blocks * width + first;
    const int columns = first + COLUMNS < width ? COLUMNS : (int)(width - first);
    const tk_i64 begin = job % splits * share;
    const tk_i64 end = begin + share < count ? begin + share : count;
    const tk_i64 base = KEPT_PLACE(o);
    A total[COLUMNS];
    tk_i64 r = begin;
#ifdef HAS_INIT
    for (int c = 0; c < COLUMNS; ++c) total[c] = initial();
#else
    tk_i64 place = base + REDUCED_PLACE(r);
    for (int c = 0; c < columns; ++c) total[c] = map_element(ELEMENT(place + c), r);
    ++r;
#endif
    for (; r < end; ++r) {
      const tk_i64 at = base + REDUCED_PLACE(r);
      if (columns == COLUMNS)
        for (int c = 0; c < COLUMNS; ++c)
          total[c] = combine(total[c], map_element(ELEMENT(at + c), r));
      else
        for (int c = 0; c < columns; ++c)
          total[c] = combine(total[c], map_element(ELEMENT(at + c), r));
    }
    for (int c = 0; c < columns; ++c) RESULT(o + c, job % splits * outputs + o + c, total[c]);
  }

#else /* one work item for each job */
  FOR_EACH(job, outputs * splits) {
    const tk_i64 o = job % outputs, begin = job / outputs * share;
    const tk_i64 end = begin + share < count ? begin + share : count;
    const tk_i64 base = KEPT_PLACE(o);
    tk_i64 r = begin;
#ifdef HAS_INIT
    A total = initial();
#else
    A total = map_element(ELEMENT(base + REDUCED_PLACE(r)), r);
    ++r;
#endif
    while (r < end) {
      /* A stretch along the last axis, in LANES sums side by side: they fit vector registers, and
       * many short sums round less than one long one. */
      const tk_i64 place = base + REDUCED_PLACE(r);
      tk_i64 stretch = reduced_shape.v[REDUCED_RANK - 1] - r % reduced_shape.v[REDUCED_RANK - 1];
      if (stretch > end - r) stretch = end - r;
      if (stretch > 4096) stretch = 4096;
      tk_i64 k = 0;
      if (stretch >= 2 * LANES) {
        A lanes[LANES];
        for (int l = 0; l < LANES; ++l) lanes[l] = map_element(ELEMENT(place + l * STEP), r + l);
        for (k = LANES; k + LANES <= stretch; k += LANES)
          for (int l = 0; l < LANES; ++l)
            lanes[l] = combine(lanes[l], map_element(ELEMENT(place + (k + l) * STEP), r + k + l));
        for (int width = LANES / 2; width > 0; width /= 2)
          for (int l = 0; l < width; ++l) lanes[l] = combine(lanes[l], lanes[l + width]);
        total = combine(total, lanes[0]);
      }
      for (; k < stretch; ++k)
        total = combine(total, map_element(ELEMENT(place + k * STEP), r + k));
      r += stretch;
    }
    RESULT(o, job, total);
  }
#endif
}
#endif
