/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products along one axis of [outer, length, inner]; a lane is one outer and one
 * inner index. A is the type of partial results, which JOIN(a, b) combines, AS_PARTIAL(v) makes. */
TK_KERNEL void KERNEL(TK_BUFFER(IN_STORAGE, x), TK_BUFFER(OUT_STORAGE, out), tk_i64 length,
                      tk_i64 inner, tk_i32 reverse, tk_i64 lanes) {
#ifdef GROUP /* one for each lane: its items scan EACH elements, then add what is before them */
  TK_LOCAL A totals[GROUP];
  TK_LOCAL A elements[GROUP * (EACH + 1)];
#endif
  TK_BIND(IN_STORAGE, x);
  TK_BIND(OUT_STORAGE, out);
#ifdef GROUP
  /* GROUP * EACH elements at a time; neighbouring items read neighbouring elements. */
  const int item = (int)tk_local_id(0);
  for (tk_i64 lane = tk_group_id(0); lane < lanes; lane += tk_group_count(0)) {
    const tk_i64 base = lane / inner * length * inner + lane % inner;
    A carried = START;
    for (tk_i64 begin = 0; begin < length; begin += GROUP * EACH) {
      for (int at = item; at < GROUP * EACH; at += GROUP) {
        const tk_i64 k = begin + at;
        const tk_i64 place = base + (reverse ? length - 1 - k : k) * inner;
        elements[at + at / EACH] = k < length ? AS_PARTIAL(IN_LOAD(x[place])) : START;
      }
      tk_barrier();
      A own[EACH], total = START;
      for (int i = 0; i < EACH; ++i) own[i] = total = JOIN(total, elements[item * (EACH + 1) + i]);
      totals[item] = total;
      tk_barrier();
      for (int step = 1; step < GROUP; step *= 2) {
        const A before = item >= step ? totals[item - step] : START;
        tk_barrier();
        if (item >= step) totals[item] = JOIN(before, totals[item]);
        tk_barrier();
      }
      const A before = item > 0 ? JOIN(carried, totals[item - 1]) : carried;
      for (int i = 0; i < EACH; ++i) elements[item * (EACH + 1) + i] = JOIN(before, own[i]);
      carried = JOIN(carried, totals[GROUP - 1]);
      tk_barrier();
      for (int at = item; at < GROUP * EACH; at += GROUP) {
        const tk_i64 k = begin + at;
        const tk_i64 place = base + (reverse ? length - 1 - k : k) * inner;
        if (k < length) out[place] = OUT_STORE(OUT_CONVERT(elements[at + at / EACH]));
      }
      tk_barrier();
    }
  }
#else
  FOR_EACH(lane, lanes) {
    tk_i64 place = lane / inner * length * inner + lane % inner;
    if (reverse) place += (length - 1) * inner;
    A total = START;
    for (tk_i64 k = 0; k < length; ++k) {
      total = JOIN(total, AS_PARTIAL(IN_LOAD(x[place])));
      out[place] = OUT_STORE(OUT_CONVERT(total));
      place += reverse ? -inner : inner;
    }
  }
#endif
}
