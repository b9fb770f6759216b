/* SPDX-License-Identifier: Apache-2.0 */
/* One pass of a stable LSD radix sort along the middle axis of [outer, length, inner], for digits of 4 bits: COUNT the
 * digits of each tile, SCAN the counts into indices, SCATTER the tiles' elements there. Satish, Harris, Garland:
 * Designing Efficient Sorting Algorithms for Manycore GPUs (2009). A tile is GROUP * EACH neighbours of one lane.
 *
 * A key is an unsigned number with the order of the elements, KEY_BITS wide; equal elements have equal keys, so that -0
 * follows 0 and one NaN another in the order in which they came. `counts` are [lane][digit][tile]. */
#define DIGITS 16
#define TILE (GROUP * EACH)
#define HIGHEST_BIT ((KEY)1 << (KEY_BITS - 1))

/* Where the first pass finds its keys: in x, and the indices are those that they have there. */
TK_FUNCTION KEY key_of(STORAGE stored) {
#if defined(T_FLOAT)
  const T value = (T)LOAD(stored);
#if KEY_BITS == 64
  const KEY bits = value == 0 ? 0 : (KEY)tk_f64_bits(value);
#elif KEY_BITS == 32
  const KEY bits = value == 0 ? 0 : (KEY)tk_f32_bits(value);
#else /* 16 bits, which need no arithmetic */
  const KEY bits = value == 0 ? 0 : (KEY)stored;
#endif
  const KEY ordered =
      value != value ? (KEY) ~(KEY)0 : (KEY)(bits & HIGHEST_BIT ? ~bits : bits | HIGHEST_BIT);
#elif defined(T_SIGNED)
  const KEY ordered = (KEY)((KEY)stored ^ HIGHEST_BIT);
#else
  const KEY ordered = (KEY)LOAD(stored);
#endif
#ifdef DESCENDING
  return (KEY)~ordered;
#else
  return ordered;
#endif
}

#ifdef FIRST_PASS
#define KEY_AT(lane, k) key_of(x[(lane) / inner * length * inner + (lane) % inner + (k)*inner])
#define INDEX_AT(lane, k) ((tk_u32)(k))
#else
#define KEY_AT(lane, k) from_keys[(lane)*length + (k)]
#define INDEX_AT(lane, k) from_indices[(lane)*length + (k)]
#endif
#define DIGIT(key) ((int)((key) >> shift & (DIGITS - 1)))

#if defined(COUNT)
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(KEY, from_keys), TK_BUFFER(tk_u32, counts),
                      tk_i64 length, tk_i64 inner, tk_i64 lanes, tk_i64 tiles, tk_i32 shift) {
  TK_LOCAL tk_u16 counted[DIGITS * GROUP];
  TK_BIND(STORAGE, x);
  TK_BIND(KEY, from_keys);
  TK_BIND(tk_u32, counts);
  const int me = (int)tk_local_id(0);
  for (tk_i64 job = tk_group_id(0); job < lanes * tiles; job += tk_group_count(0)) {
    const tk_i64 lane = job / tiles, tile = job % tiles, begin = tile * TILE;
    for (int d = 0; d < DIGITS; ++d) counted[d * GROUP + me] = 0;
    for (int i = 0; i < EACH; ++i) {
      const tk_i64 k = begin + i * GROUP + me;
      if (k < length) ++counted[DIGIT(KEY_AT(lane, k)) * GROUP + me];
    }
    tk_barrier();
    /* GROUP / DIGITS items sum up a part of each digit's counters, then one of them the parts. */
    const int digit = me / (GROUP / DIGITS), part = me % (GROUP / DIGITS);
    tk_u32 sum = 0;
    for (int i = 0; i < DIGITS; ++i) sum += counted[digit * GROUP + i * (GROUP / DIGITS) + part];
    tk_barrier();
    counted[me] = (tk_u16)sum;
    tk_barrier();
    if (me < DIGITS) {
      sum = 0;
      for (int i = 0; i < GROUP / DIGITS; ++i) sum += counted[me * (GROUP / DIGITS) + i];
      counts[(lane * DIGITS + me) * tiles + tile] = sum;
    }
    tk_barrier();
  }
}

#elif defined(SCAN) /* the counts of a lane become the sums of those before */
TK_KERNEL void KERNEL(TK_BUFFER(tk_u32, counts), tk_i64 tiles, tk_i64 lanes) {
  TK_LOCAL tk_u32 sums[GROUP];
  TK_BIND(tk_u32, counts);
  const int me = (int)tk_local_id(0);
  const tk_i64 total = DIGITS * tiles;
  for (tk_i64 lane = tk_group_id(0); lane < lanes; lane += tk_group_count(0)) {
    tk_u32 before = 0;
    for (tk_i64 begin = 0; begin < total; begin += TILE) {
      tk_u32 own[EACH], sum = 0;
      const tk_i64 first = lane * total + begin + (tk_i64)me * EACH, end = (lane + 1) * total;
      for (int i = 0; i < EACH; ++i) {
        own[i] = sum;
        sum += first + i < end ? counts[first + i] : 0;
      }
      sums[me] = sum;
      tk_barrier();
      for (int step = 1; step < GROUP; step *= 2) {
        const tk_u32 left = me >= step ? sums[me - step] : 0;
        tk_barrier();
        sums[me] += left;
        tk_barrier();
      }
      const tk_u32 start = before + sums[me] - sum;
      for (int i = 0; i < EACH; ++i)
        if (first + i < end) counts[first + i] = start + own[i];
      before += sums[GROUP - 1];
      tk_barrier();
    }
  }
}

#else /* SCATTER */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(KEY, from_keys),
                      TK_BUFFER(tk_u32, from_indices), TK_BUFFER(KEY, to_keys),
                      TK_BUFFER(tk_u32, to_indices), TK_BUFFER(tk_u32, counts), tk_i64 length,
                      tk_i64 inner, tk_i64 lanes, tk_i64 tiles, tk_i32 shift) {
  TK_LOCAL KEY keys[TILE];
  TK_LOCAL tk_u32 indices[TILE];
  TK_LOCAL tk_u16 counted[DIGITS * GROUP];
  TK_LOCAL tk_u16 sums[GROUP];
  TK_BIND(STORAGE, x);
  TK_BIND(KEY, from_keys);
  TK_BIND(tk_u32, from_indices);
  TK_BIND(KEY, to_keys);
  TK_BIND(tk_u32, to_indices);
  TK_BIND(tk_u32, counts);
  const int me = (int)tk_local_id(0);
  for (tk_i64 job = tk_group_id(0); job < lanes * tiles; job += tk_group_count(0)) {
    const tk_i64 lane = job / tiles, tile = job % tiles, begin = tile * TILE;
    const int count = length - begin < TILE ? (int)(length - begin) : TILE;
    /* Read by neighbours, then each item takes EACH neighbouring elements: ranks follow the order. */
    for (int i = me; i < count; i += GROUP) {
      keys[i] = KEY_AT(lane, begin + i);
      indices[i] = INDEX_AT(lane, begin + i);
    }
    for (int d = 0; d < DIGITS; ++d) counted[d * GROUP + me] = 0;
    tk_barrier();
    KEY own_keys[EACH];
    tk_u32 own_indices[EACH];
    tk_u16 ranks[EACH];
    for (int i = 0; i < EACH; ++i) {
      const int at = me * EACH + i;
      if (at < count) {
        own_keys[i] = keys[at];
        own_indices[i] = indices[at];
        ranks[i] = counted[DIGIT(own_keys[i]) * GROUP + me]++;
      }
    }
    tk_barrier();
    /* The counters, digit by digit and in a digit item by item, become the sums of those before. An item scans DIGITS
     * neighbours. */
    tk_u16 sum = 0;
    for (int i = 0; i < DIGITS; ++i) {
      const tk_u16 own = counted[me * DIGITS + i];
      counted[me * DIGITS + i] = sum;
      sum = (tk_u16)(sum + own);
    }
    sums[me] = sum;
    tk_barrier();
    for (int step = 1; step < GROUP; step *= 2) {
      const tk_u16 left = me >= step ? sums[me - step] : 0;
      tk_barrier();
      sums[me] = (tk_u16)(sums[me] + left);
      tk_barrier();
    }
    for (int i = 0; i < DIGITS; ++i)
      counted[me * DIGITS + i] = (tk_u16)(counted[me * DIGITS + i] + sums[me] - sum);
    tk_barrier();
    for (int i = 0; i < EACH; ++i) {
      if (me * EACH + i >= count) continue;
      const int to = counted[DIGIT(own_keys[i]) * GROUP + me] + ranks[i];
      keys[to] = own_keys[i];
      indices[to] = own_indices[i];
    }
    tk_barrier();
    /* The tile is sorted by this digit: neighbours write to neighbours. */
    for (int i = me; i < count; i += GROUP) {
      const int digit = DIGIT(keys[i]);
      const tk_i64 to = lane * length + counts[(lane * DIGITS + digit) * tiles + tile] + i -
                        counted[digit * GROUP];
#ifndef LAST_PASS
      to_keys[to] = keys[i];
#endif
      to_indices[to] = indices[i];
    }
    tk_barrier();
  }
}
#endif
