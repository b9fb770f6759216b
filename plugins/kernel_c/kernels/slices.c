/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that need a whole slice for each of its elements: softmax, log_softmax, layer_norm,
 * batch_norm. A slice is `stretches` stretches of `length` elements; slice i begins at
 * i / inner * slice_step + i % inner * inner_step. With GROUP, its items share one. */
#ifdef UNIT_STEP
#define STEP 1
#else
#define STEP step
#endif
#define ELEMENT(k) ((T)LOAD(x[place + (k)*STEP]))
#define WRITE(k, value) out[place + (k)*STEP] = STORE((COMPUTE)(value))

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
#define VALUE_SELF(k) ELEMENT(k)
#define VALUE_EXP(k) exp(ELEMENT(k) - top)
#define VALUE_SQUARE(k) ((ELEMENT(k) - mean) * (ELEMENT(k) - mean))

TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(STORAGE, out),
#ifdef NORM
                      TK_BUFFER(STORAGE, weight), TK_BUFFER(STORAGE, bias),
                      TK_BUFFER(COMPUTE, means), TK_BUFFER(COMPUTE, variances), T eps,
#endif
                      tk_i64 stretches, tk_i64 stretch_step, tk_i64 length, tk_i64 step,
                      tk_i64 inner, tk_i64 slice_step, tk_i64 inner_step, tk_i64 slices) {
#ifdef GROUP
  TK_LOCAL T shared[GROUP];
#endif
  TK_BIND(STORAGE, x);
  TK_BIND(STORAGE, out);
#ifdef NORM
  TK_BIND(STORAGE, weight);
  TK_BIND(STORAGE, bias);
  TK_BIND(COMPUTE, means);
  TK_BIND(COMPUTE, variances);
#endif
#ifdef GROUP
  for (tk_i64 slice = tk_group_id(0); slice < slices; slice += tk_group_count(0)) {
#else
  FOR_EACH(slice, slices) {
#endif
    const tk_i64 base = slice / inner * slice_step + slice % inner * inner_step;
#ifdef NORM
    const T count = (T)(stretches * length);
    T mean, variance;
    FOLD(mean, 0, VALUE_SELF, JOIN_SUM)
    mean /= count;
    FOLD(variance, 0, VALUE_SQUARE, JOIN_SUM)
    variance /= count;
    const T scale = 1 / sqrt(variance + eps);
#ifdef PER_SLICE /* batch_norm: one weight for the slice; the moments are results */
    const T slope = scale * WEIGHT(slice), start = BIAS(slice) - mean * slope;
    FOR_SLICE(k) WRITE(k, ELEMENT(k) * slope + start);
    if (FIRST == 0) {
      means[slice] = (COMPUTE)mean;
      variances[slice] = (COMPUTE)variance;
    }
#else
    FOR_SLICE(k) WRITE(k, (ELEMENT(k) - mean) * scale * WEIGHT(k) + BIAS(k));
#endif
#else
    T top, sum;
    FOLD(top, TK_LOWEST, VALUE_SELF, JOIN_MAX)
    if (k_isinf(top)) top = 0; /* a slice of -inf has nothing to divide by */
    FOLD(sum, 0, VALUE_EXP, JOIN_SUM)
#ifdef LOGARITHM
    const T shift = top + log(sum);
    FOR_SLICE(k) WRITE(k, ELEMENT(k) - shift);
#else
    const T scale = 1 / sum;
    FOR_SLICE(k) WRITE(k, VALUE_EXP(k) * scale);
#endif
#endif
  }
}
