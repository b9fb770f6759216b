/* SPDX-License-Identifier: Apache-2.0 */
/* Stable merge sort along the middle axis of [outer, length, inner]: runs of RUN are sorted by
 * insertion, then passes merge two runs each. Every element finds its own place, by counting those
 * of the other run that come before it, so a pass is as parallel as there are elements.
 *
 * What is sorted are linear (int64 along the axis), lane by lane: linear[lane * length + k]. */
#ifdef T_FLOAT
#define PRECEDES(a, b) ((a) < (b) || ((b) != (b) && (a) == (a))) /* NaN is the largest */
#else
#define PRECEDES(a, b) ((a) < (b))
#endif
#ifdef DESCENDING
#define BEFORE(a, b) PRECEDES(b, a)
#else
#define BEFORE(a, b) PRECEDES(a, b)
#endif
#define KEY(place) ((T)LOAD(x[base + (place)*inner]))
#define LANE_BASE(lane) ((lane) / inner * length * inner + (lane) % inner)

#if defined(RUNS)
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(tk_i64, linear), tk_i64 length, tk_i64 inner,
                      tk_i64 runs, tk_i64 lanes) {
  TK_BIND(STORAGE, x);
  TK_BIND(tk_i64, linear);
  FOR_EACH(job, lanes * runs) {
    const tk_i64 lane = job / runs, begin = job % runs * RUN, base = LANE_BASE(lane);
    const int run = length - begin < RUN ? (int)(length - begin) : RUN;
    T keys[RUN];
    tk_i64 sorted[RUN];
    for (int i = 0; i < run; ++i) {
      const T key = KEY(begin + i);
      int at = i;
      for (; at > 0 && BEFORE(key, keys[at - 1]); --at) {
        keys[at] = keys[at - 1];
        sorted[at] = sorted[at - 1];
      }
      keys[at] = key;
      sorted[at] = begin + i;
    }
    for (int i = 0; i < run; ++i) linear[lane * length + begin + i] = sorted[i];
  }
}

#elif defined(MERGE)
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(tk_i64, from), TK_BUFFER(tk_i64, to),
                      tk_i64 length, tk_i64 inner, tk_i64 run, tk_i64 lanes) {
  TK_BIND(STORAGE, x);
  TK_BIND(tk_i64, from);
  TK_BIND(tk_i64, to);
#ifdef HOST_LIKE /* one item merges two whole runs: fewer steps, if less parallel */
  const tk_i64 pairs = (length + 2 * run - 1) / (2 * run);
  FOR_EACH(job, lanes * pairs) {
    const tk_i64 lane = job / pairs, base = LANE_BASE(lane), begin = job % pairs * 2 * run;
    const tk_i64 middle = begin + run < length ? begin + run : length;
    const tk_i64 end = middle + run < length ? middle + run : length;
    tk_i64 left = begin, right = middle;
    for (tk_i64 k = begin; k < end; ++k) {
      const tk_i64 l = lane * length + left, r = lane * length + right;
      const int take_right = right < end && (left >= middle || BEFORE(KEY(from[r]), KEY(from[l])));
      to[lane * length + k] = take_right ? from[r] : from[l];
      if (take_right)
        ++right;
      else
        ++left;
    }
  }
#else
  FOR_EACH(e, lanes * length) {
    const tk_i64 lane = e / length, k = e % length, base = LANE_BASE(lane);
    const tk_i64 begin = k / (2 * run) * (2 * run);
    const tk_i64 middle = begin + run < length ? begin + run : length;
    const tk_i64 end = middle + run < length ? middle + run : length;
    const int on_left = k < middle;
    const tk_i64 place = from[e];
    const T key = KEY(place);
    tk_i64 low = on_left ? middle : begin, high = on_left ? end : middle;
    const tk_i64 first = low;
    /* Those of the other run before this one; of equals, the left run's are first. */
    while (low < high) {
      const tk_i64 half_way = low + (high - low) / 2;
      const T other = KEY(from[lane * length + half_way]);
      if (on_left ? BEFORE(other, key) : !BEFORE(key, other))
        low = half_way + 1;
      else
        high = half_way;
    }
    to[lane * length + begin + (k - (on_left ? begin : middle)) + (low - first)] = place;
  }
#endif
}

#else              /* the `keep` first of each lane, in the layout of the results */
#ifdef PICK_PLACED /* by kernels/radix_sort.c */
#define INDEX tk_u32
#else
#define INDEX tk_i64
#endif
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(INDEX, linear), TK_BUFFER(STORAGE, values),
                      TK_BUFFER(tk_i64, indices), tk_i64 length, tk_i64 inner, tk_i64 keep,
                      tk_i64 count) {
  TK_BIND(STORAGE, x);
  TK_BIND(INDEX, linear);
  TK_BIND(STORAGE, values);
  TK_BIND(tk_i64, indices);
  FOR_EACH(e, count) {
    const tk_i64 i = e % inner, k = e / inner % keep, lane = e / inner / keep * inner + i;
    const tk_i64 place = linear[lane * length + k];
    values[e] = x[LANE_BASE(lane) + place * inner];
    indices[e] = place;
  }
}
#endif
