/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products along one axis of [outer, length, inner]; a lane is one outer and one
 * inner index. A is the type of partial results. */
#define JOIN(a, b) ((A)((a)OPERATION(b)))
TK_KERNEL void KERNEL(TK_BUFFER(IN_STORAGE, x), TK_BUFFER(OUT_STORAGE, out), tk_i64 length,
                      tk_i64 inner, tk_i32 reverse, tk_i64 lanes) {
#ifdef GROUP /* one for each lane: its items scan a part each, then add what is before it */
  TK_LOCAL A totals[GROUP];
#endif
  TK_BIND(IN_STORAGE, x);
  TK_BIND(OUT_STORAGE, out);
#ifdef GROUP
  const tk_i64 item = tk_local_id(0), share = (length + GROUP - 1) / GROUP;
  for (tk_i64 lane = tk_group_id(0); lane < lanes; lane += tk_group_count(0)) {
    const tk_i64 base = lane / inner * length * inner + lane % inner;
    const tk_i64 begin = item * share, end = begin + share < length ? begin + share : length;
    A total = START;
    for (tk_i64 k = begin; k < end; ++k)
      total = JOIN(total, (A)IN_LOAD(x[base + (reverse ? length - 1 - k : k) * inner]));
    totals[item] = total;
    tk_barrier();
    for (int step = 1; step < GROUP; step *= 2) {
      const A before = item >= step ? totals[item - step] : START;
      tk_barrier();
      if (item >= step) totals[item] = JOIN(before, totals[item]);
      tk_barrier();
    }
    total = item > 0 ? totals[item - 1] : START;
    for (tk_i64 k = begin; k < end; ++k) {
      const tk_i64 place = base + (reverse ? length - 1 - k : k) * inner;
      total = JOIN(total, (A)IN_LOAD(x[place]));
      out[place] = OUT_STORE(OUT_CONVERT(total));
    }
    tk_barrier();
  }
#else
  FOR_EACH(lane, lanes) {
    tk_i64 place = lane / inner * length * inner + lane % inner;
    if (reverse) place += (length - 1) * inner;
    A total = START;
    for (tk_i64 k = 0; k < length; ++k) {
      total = JOIN(total, (A)IN_LOAD(x[place]));
      out[place] = OUT_STORE(OUT_CONVERT(total));
      place += reverse ? -inner : inner;
    }
  }
#endif
}
