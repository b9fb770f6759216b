/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that need a whole slice for each of its elements: softmax, log_softmax, layer_norm,
 * batch_norm. kernels/fold.c says how a slice lies in memory. */
#define ELEMENT(k) ((T)LOAD(x[place + (k)*STEP]))
#define WRITE(k, value) out[place + (k)*STEP] = STORE((COMPUTE)(value))

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
    const T weight_here = WEIGHT(slice), bias_here = BIAS(slice);
    FOR_SLICE(k) WRITE(k, (ELEMENT(k) - mean) * scale * weight_here + bias_here);
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
