/* SPDX-License-Identifier: Apache-2.0 */
/* Going over slices. A slice is `stretches` stretches of `length` elements; slice i begins at
 * i / inner * slice_step + i % inner * inner_step, which is `base`. With GROUP, its items share one. */
#ifdef UNIT_STEP
#define STEP 1
#else
#define STEP step
#endif
#ifdef GROUP
#define FIRST tk_local_id(0)
#define EVERY GROUP
#define LANES 1
#else
#define FIRST 0
#define EVERY 1
#define LANES 16 /* partial results side by side: they fit vector registers */
#endif

/* result = JOIN of VALUE(k) over the slice. */
#define FOLD(result, start, VALUE, JOIN)                                           \
  {                                                                                \
    T lanes[LANES];                                                                \
    for (int l = 0; l < LANES; ++l) lanes[l] = (start);                            \
    for (tk_i64 s = 0; s < stretches; ++s) {                                       \
      const tk_i64 place = base + s * stretch_step;                                \
      tk_i64 k = FIRST;                                                            \
      for (; k + (LANES - 1) * EVERY < length; k += LANES * EVERY)                 \
        for (int l = 0; l < LANES; ++l) lanes[l] = JOIN(lanes[l], VALUE(k + l));   \
      for (; k < length; k += EVERY) lanes[0] = JOIN(lanes[0], VALUE(k));          \
    }                                                                              \
    for (int width = LANES / 2; width > 0; width /= 2)                             \
      for (int l = 0; l < width; ++l) lanes[l] = JOIN(lanes[l], lanes[l + width]); \
    result = lanes[0];                                                             \
    GROUP_FOLD(result, JOIN)                                                       \
  }
#ifdef GROUP
#define GROUP_FOLD(result, JOIN)                                                             \
  shared[tk_local_id(0)] = result;                                                           \
  tk_barrier();                                                                              \
  for (int width = GROUP / 2; width > 0; width /= 2) {                                       \
    if (tk_local_id(0) < width)                                                              \
      shared[tk_local_id(0)] = JOIN(shared[tk_local_id(0)], shared[tk_local_id(0) + width]); \
    tk_barrier();                                                                            \
  }                                                                                          \
  result = shared[0];                                                                        \
  tk_barrier();
#else
#define GROUP_FOLD(result, JOIN)
#endif
#define FOR_SLICE(k)                     \
  for (tk_i64 s = 0; s < stretches; ++s) \
    for (tk_i64 k = FIRST, place = base + s * stretch_step; k < length; k += EVERY)

#define JOIN_SUM(a, b) ((a) + (b))
#define JOIN_MAX(a, b) ((b) > (a) ? (b) : (a))
