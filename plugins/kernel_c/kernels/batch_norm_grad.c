/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of batch_norm from its moments; a slice (kernels/fold.c) is a channel. Ioffe, Szegedy: Batch
 * Normalization (2015), section 3. */
#define GRAD(k) ((T)LOAD(grad[place + (k)*STEP]))
#define NORMALIZED(k) (((T)LOAD(x[place + (k)*STEP]) - mean) * scale)
#define VALUE_GRAD(k) GRAD(k)
#define VALUE_ALONG(k) (GRAD(k) * NORMALIZED(k))

TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, grad), TK_BUFFER(STORAGE, x), TK_BUFFER(STORAGE, weight),
                      TK_BUFFER(COMPUTE, means), TK_BUFFER(COMPUTE, variances),
                      TK_BUFFER(STORAGE, dx), TK_BUFFER(STORAGE, dweight),
                      TK_BUFFER(STORAGE, dbias), T eps, tk_i64 stretches, tk_i64 stretch_step,
                      tk_i64 length, tk_i64 step, tk_i64 inner, tk_i64 slice_step,
                      tk_i64 inner_step, tk_i64 slices) {
#ifdef GROUP
  TK_LOCAL T shared[GROUP];
#endif
  TK_BIND(STORAGE, grad);
  TK_BIND(STORAGE, x);
  TK_BIND(STORAGE, weight);
  TK_BIND(COMPUTE, means);
  TK_BIND(COMPUTE, variances);
  TK_BIND(STORAGE, dx);
  TK_BIND(STORAGE, dweight);
  TK_BIND(STORAGE, dbias);
#ifdef GROUP
  for (tk_i64 slice = tk_group_id(0); slice < slices; slice += tk_group_count(0)) {
#else
  FOR_EACH(slice, slices) {
#endif
    const tk_i64 base = slice / inner * slice_step + slice % inner * inner_step;
    const T count = (T)(stretches * length);
    const T mean = (T)means[slice], scale = 1 / sqrt((T)variances[slice] + eps);
    T sum, along;
    FOLD(sum, 0, VALUE_GRAD, JOIN_SUM)
    FOLD(along, 0, VALUE_ALONG, JOIN_SUM)
    const T shared_part = sum / count, along_part = along / count;
    const T weight_here = WEIGHT(slice);
    FOR_SLICE(k)
    dx[place + (k)*STEP] = STORE(
        (COMPUTE)((GRAD(k) - shared_part - NORMALIZED(k) * along_part) * scale * weight_here));
    if (FIRST == 0) {
      dweight[slice] = STORE((COMPUTE)along);
      dbias[slice] = STORE((COMPUTE)sum);
    }
  }
}
