/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels: how the accelerator computes. The host has broadcast, converted and made contiguous all
 * inputs before it calls one, and has allocated the outputs; only a kernel that claims a trait (see
 * `clone`) gets more. Operators that are not here still run: the host takes them apart into
 * operators that are, and those into the primitives.
 *
 * tenon/op_signatures.h is generated from the operators' definitions. For each operator it declares
 * the C signature, TENON_BOX_<op> (a wrapper that unpacks boxed arguments) and TENON_KERNEL_<op>
 * (the row of the kernel table). A wrong signature does not compile. */
#include <math.h>
#include <string.h>
#include <tenon/op_signatures.h>

#include "toy_hardware.h"
#include "toy_plugin.h"

#define MASK(dtype) (UINT64_C(1) << TENON_DTYPE_##dtype)
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What the board's cores see at a tensor's address. NULL after a failure was reported. */
static void* core_view(const tenon_tensor* t, tenon_err* err) {
  static char nothing[16];
  if (t->numel == 0) return nothing;
  void* memory = toy_core_view(t->data, 1);
  if (!memory) toy_fail(err, TENON_INTERNAL, TOY_ERROR_ADDRESS, "toy: kernel: not a board address");
  return memory;
}

/* ==== Elementwise ============================================================================= */

#define UNARY(op, result, expression)                                                      \
  static tenon_status toy_##op(tenon_ctx* ctx, const tenon_tensor* x_, tenon_tensor* out_, \
                               tenon_err* err) {                                           \
    (void)ctx;                                                                             \
    const float* const a = core_view(x_, err);                                             \
    result* const out = core_view(out_, err);                                              \
    if (!a || !out) return TENON_INTERNAL;                                                 \
    for (int64_t i = 0; i < out_->numel; ++i) {                                            \
      const float x = a[i];                                                                \
      out[i] = (expression);                                                               \
    }                                                                                      \
    return TENON_OK;                                                                       \
  }                                                                                        \
  TENON_BOX_##op(toy_##op##_boxed, toy_##op)

#define BINARY(op, result, expression)                                                         \
  static tenon_status toy_##op(tenon_ctx* ctx, const tenon_tensor* x_, const tenon_tensor* y_, \
                               tenon_tensor* out_, tenon_err* err) {                           \
    (void)ctx;                                                                                 \
    const float* const a = core_view(x_, err);                                                 \
    const float* const b = core_view(y_, err);                                                 \
    result* const out = core_view(out_, err);                                                  \
    if (!a || !b || !out) return TENON_INTERNAL;                                               \
    for (int64_t i = 0; i < out_->numel; ++i) {                                                \
      const float x = a[i], y = b[i];                                                          \
      out[i] = (expression);                                                                   \
    }                                                                                          \
    return TENON_OK;                                                                           \
  }                                                                                            \
  TENON_BOX_##op(toy_##op##_boxed, toy_##op)

UNARY(negative, float, -x);
UNARY(abs, float, fabsf(x));
UNARY(exp, float, expf(x));
UNARY(log, float, logf(x));
UNARY(sqrt, float, sqrtf(x));
UNARY(rsqrt, float, 1.0f / sqrtf(x));
UNARY(square, float, (x * x));
UNARY(reciprocal, float, 1.0f / x);
UNARY(tanh, float, tanhf(x));
UNARY(relu, float, x > 0.0f || x != x ? x : 0.0f);
UNARY(isfinite, uint8_t, isfinite(x) != 0);
BINARY(add, float, x + y);
BINARY(subtract, float, x - y);
BINARY(multiply, float, (x * y));
BINARY(divide, float, x / y);
BINARY(maximum, float, x > y || x != x ? x : y);
BINARY(minimum, float, x < y || x != x ? x : y);
BINARY(pow, float, powf(x, y));
BINARY(relu_grad, float, y > 0.0f ? x : 0.0f);
BINARY(equal, uint8_t, x == y);
BINARY(not_equal, uint8_t, x != y);
BINARY(greater, uint8_t, x > y);
BINARY(greater_equal, uint8_t, x >= y);
BINARY(less, uint8_t, x < y);
BINARY(less_equal, uint8_t, x <= y);

static tenon_status toy_lerp(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                             const tenon_tensor* weight, tenon_tensor* out, tenon_err* err) {
  (void)ctx;
  const float* const a = core_view(x, err);
  const float* const b = core_view(y, err);
  const float* const w = core_view(weight, err);
  float* const o = core_view(out, err);
  if (!a || !b || !w || !o) return TENON_INTERNAL;
  for (int64_t i = 0; i < out->numel; ++i) o[i] = a[i] + w[i] * (b[i] - a[i]);
  return TENON_OK;
}
TENON_BOX_lerp(toy_lerp_boxed, toy_lerp);

static tenon_status toy_where(tenon_ctx* ctx, const tenon_tensor* condition, const tenon_tensor* x,
                              const tenon_tensor* y, tenon_tensor* out, tenon_err* err) {
  (void)ctx;
  const uint8_t* const c = core_view(condition, err);
  const float* const a = core_view(x, err);
  const float* const b = core_view(y, err);
  float* const o = core_view(out, err);
  if (!c || !a || !b || !o) return TENON_INTERNAL;
  for (int64_t i = 0; i < out->numel; ++i) o[i] = c[i] ? a[i] : b[i];
  return TENON_OK;
}
TENON_BOX_where(toy_where_boxed, toy_where);

/* ==== Memory: fill, convert, copy ============================================================= */

/* Elements pass through double, which holds all of these exactly. int64 is left to the host. */
#define CONVERTIBLE (MASK(BOOL) | MASK(U8) | MASK(I32) | MASK(F32) | MASK(F64))

static double load(const void* memory, uint8_t dtype, int64_t i) {
  switch (dtype) {
    case TENON_DTYPE_I32:
      return ((const int32_t*)memory)[i];
    case TENON_DTYPE_F32:
      return ((const float*)memory)[i];
    case TENON_DTYPE_F64:
      return ((const double*)memory)[i];
    default:
      return ((const uint8_t*)memory)[i];
  }
}

static void store(void* memory, uint8_t dtype, int64_t i, double value) {
  switch (dtype) {
    case TENON_DTYPE_BOOL:
      ((uint8_t*)memory)[i] = value != 0.0;
      break;
    case TENON_DTYPE_U8:
      ((uint8_t*)memory)[i] = (uint8_t)(int64_t)value;
      break;
    case TENON_DTYPE_I32:
      ((int32_t*)memory)[i] = (int32_t)(int64_t)value;
      break;
    case TENON_DTYPE_F32:
      ((float*)memory)[i] = (float)value;
      break;
    case TENON_DTYPE_F64:
      ((double*)memory)[i] = value;
      break;
  }
}

static tenon_status toy_cast(tenon_ctx* ctx, const tenon_tensor* x, int32_t dtype,
                             tenon_tensor* out, tenon_err* err) {
  (void)ctx, (void)dtype; /* `out` has it */
  const void* const from = core_view(x, err);
  void* const to = core_view(out, err);
  if (!from || !to) return TENON_INTERNAL;
  for (int64_t i = 0; i < out->numel; ++i) store(to, out->dtype, i, load(from, x->dtype, i));
  return TENON_OK;
}
TENON_BOX_cast(toy_cast_boxed, toy_cast);

/* A kernel may decline a call after looking at its arguments. */
static int32_t can_cast(const tenon_value* args, uint32_t nargs) {
  return nargs > 1 && (CONVERTIBLE >> args[1].v.i & 1);
}

static tenon_status toy_full(tenon_ctx* ctx, const int64_t* shape, uint64_t shape_count,
                             const tenon_value* value, int32_t dtype, int32_t device,
                             tenon_tensor* out, tenon_err* err) {
  (void)ctx, (void)shape, (void)shape_count, (void)dtype, (void)device;
  void* const to = core_view(out, err);
  if (!to) return TENON_INTERNAL;
  for (int64_t i = 0; i < out->numel; ++i) store(to, out->dtype, i, tenon_arg_float(value));
  return TENON_OK;
}
TENON_BOX_full(toy_full_boxed, toy_full);

/* A walk through a tensor in row-major order. Strides count elements and may be 0 or negative. */
typedef struct walk {
  int64_t offset; /* of the current element */
  int64_t index[TENON_MAX_NDIM];
} walk;

static void step(walk* w, int32_t ndim, const int64_t* shape, const int64_t* strides) {
  for (int32_t d = ndim; d-- > 0;) {
    w->offset += strides[d];
    if (++w->index[d] < shape[d]) return;
    w->offset -= strides[d] * shape[d];
    w->index[d] = 0;
  }
}

/* THE strided copy: with this one kernel the host makes any input contiguous on the device. It
 * claims STRIDED and STRIDED_OUT, so it gets strides as they are; and it moves bytes, so it takes
 * any dtype. */
static tenon_status toy_clone(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out,
                              tenon_err* err) {
  (void)ctx;
  const char* const from = core_view(x, err);
  char* const to = core_view(out, err);
  if (!from || !to) return TENON_INTERNAL;
  const int64_t bytes = toy_host->dtype_size(out->dtype);
  walk source = {0}, target = {0};
  for (int64_t i = 0; i < out->numel; ++i) {
    const char* const read = from + bytes * source.offset;
    char* const write = to + bytes * target.offset;
    if (bytes == sizeof(float))
      *(float*)write = *(const float*)read;
    else
      memcpy(write, read, (size_t)bytes);
    step(&source, x->ndim, x->shape, x->strides);
    step(&target, out->ndim, out->shape, out->strides);
  }
  return TENON_OK;
}
TENON_BOX_clone(toy_clone_boxed, toy_clone);

/* ==== Reductions ============================================================================== */

/* Strides of the output as seen from the input's axes: 0 along those that are summed over. */
static void reduced_strides(const tenon_tensor* x, const int64_t* axis, uint64_t axis_count,
                            int64_t* strides) {
  int64_t step = 1;
  for (int32_t d = x->ndim; d-- > 0;) {
    int reduced = axis == NULL;
    for (uint64_t a = 0; a < axis_count; ++a) reduced |= axis[a] == d || axis[a] + x->ndim == d;
    strides[d] = reduced ? 0 : step;
    if (!reduced) step *= x->shape[d];
  }
}

#define REDUCTION(op, init, combine, finish)                                                \
  static tenon_status toy_##op(tenon_ctx* ctx, const tenon_tensor* x_, const int64_t* axis, \
                               uint64_t axis_count, int32_t keepdim, tenon_tensor* out_,    \
                               tenon_err* err) {                                            \
    (void)ctx, (void)keepdim;                                                               \
    const float* const in = core_view(x_, err);                                             \
    float* const out = core_view(out_, err);                                                \
    if (!in || !out) return TENON_INTERNAL;                                                 \
    int64_t strides[TENON_MAX_NDIM];                                                        \
    reduced_strides(x_, axis, axis_count, strides);                                         \
    for (int64_t i = 0; i < out_->numel; ++i) out[i] = (init);                              \
    walk w = {0};                                                                           \
    for (int64_t i = 0; i < x_->numel; ++i) {                                               \
      const float a = out[w.offset], x = in[i];                                             \
      out[w.offset] = (combine);                                                            \
      step(&w, x_->ndim, x_->shape, strides);                                               \
    }                                                                                       \
    for (int64_t i = 0; i < out_->numel; ++i) {                                             \
      const float a = out[i], n = (float)x_->numel / (float)out_->numel;                    \
      (void)n;                                                                              \
      out[i] = (finish);                                                                    \
    }                                                                                       \
    return TENON_OK;                                                                        \
  }                                                                                         \
  TENON_BOX_##op(toy_##op##_boxed, toy_##op)

REDUCTION(sum, 0.0f, a + x, a);
REDUCTION(mean, 0.0f, a + x, a / n);
REDUCTION(max, -INFINITY, x > a || x != x ? x : a, a);
REDUCTION(min, INFINITY, x < a || x != x ? x : a, a);

/* ==== Elements by position ==================================================================== */

/* Positions are int64 here; the host takes other integers. */
static int32_t can_index(const tenon_value* args, uint32_t nargs) {
  (void)nargs;
  return tenon_arg_tensor(&args[1])->dtype == TENON_DTYPE_I64;
}

/* For each element of `index`: where in `x` the position that it holds leads, along `axis`. Written
 * to `offsets`, which is scratch memory of the board: the host takes it back after the call. */
static tenon_status find_offsets(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                                 int64_t axis, int64_t** offsets, tenon_err* err) {
  void* scratch = NULL;
  const uint64_t bytes = sizeof **offsets * (uint64_t)(index->numel + 1);
  const tenon_status status = toy_host->scratch(ctx, bytes, &scratch, err);
  if (status != TENON_OK) return status;
  *offsets = toy_core_view(scratch, bytes);
  const int64_t* const positions = core_view(index, err);
  if (!*offsets || !positions) return TENON_INTERNAL;
  if (axis < 0) axis += x->ndim;
  int64_t strides[TENON_MAX_NDIM];
  for (int32_t d = 0; d < x->ndim; ++d) strides[d] = d == axis ? 0 : x->strides[d];
  walk w = {0};
  for (int64_t i = 0; i < index->numel; ++i) {
    const int64_t position = positions[i] < 0 ? positions[i] + x->shape[axis] : positions[i];
    if (position < 0 || position >= x->shape[axis])
      return toy_fail(err, TENON_OUT_OF_RANGE, 0, "toy: a position lies outside its axis");
    (*offsets)[i] = w.offset + position * x->strides[axis];
    step(&w, index->ndim, index->shape, strides);
  }
  return TENON_OK;
}

static tenon_status toy_gather(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                               int64_t axis, tenon_tensor* out, tenon_err* err) {
  int64_t* offsets;
  const tenon_status status = find_offsets(ctx, x, index, axis, &offsets, err);
  if (status != TENON_OK) return status;
  const float* const from = core_view(x, err);
  float* const to = core_view(out, err);
  if (!from || !to) return TENON_INTERNAL;
  for (int64_t i = 0; i < index->numel; ++i) to[i] = from[offsets[i]];
  return TENON_OK;
}
TENON_BOX_gather(toy_gather_boxed, toy_gather);

static tenon_status toy_scatter_add(tenon_ctx* ctx, const tenon_tensor* x,
                                    const tenon_tensor* index, const tenon_tensor* source,
                                    int64_t axis, tenon_tensor* out, tenon_err* err) {
  int64_t* offsets;
  const tenon_status status = find_offsets(ctx, x, index, axis, &offsets, err);
  if (status != TENON_OK) return status;
  const float* const from = core_view(x, err);
  const float* const more = core_view(source, err);
  float* const to = core_view(out, err);
  if (!from || !more || !to) return TENON_INTERNAL;
  memmove(to, from, sizeof *to * (size_t)out->numel);
  for (int64_t i = 0; i < index->numel; ++i) to[offsets[i]] += more[source->numel == 1 ? 0 : i];
  return TENON_OK;
}
TENON_BOX_scatter_add(toy_scatter_add_boxed, toy_scatter_add);

/* ==== Pooling ================================================================================= */

/* Number `side` (0 height, 1 width) of a list of two, of which a lone number stands for both. */
static int64_t pick(const int64_t* list, uint64_t count, int side, int64_t absent) {
  return list == NULL ? absent : list[count == 1 ? 0 : side];
}

/* Two results. `indices` says where in its plane each maximum was, for the gradient. */
static tenon_status toy_max_pool2d_with_indices(tenon_ctx* ctx, const tenon_tensor* x,
                                                const int64_t* kernel_size, uint64_t kernel_count,
                                                const int64_t* stride, uint64_t stride_count,
                                                const int64_t* padding, uint64_t padding_count,
                                                const int64_t* dilation, uint64_t dilation_count,
                                                int32_t ceil_mode, tenon_tensor* values,
                                                tenon_tensor* indices, tenon_err* err) {
  (void)ctx, (void)ceil_mode; /* the shape of `values` has taken it into account */
  const float* plane = core_view(x, err);
  float* value = core_view(values, err);
  int64_t* index = core_view(indices, err);
  if (!plane || !value || !index) return TENON_INTERNAL;
  int64_t size[2], step[2], pad[2], gap[2];
  for (int side = 0; side < 2; ++side) {
    size[side] = pick(kernel_size, kernel_count, side, 1);
    step[side] = pick(stride, stride_count, side, size[side]);
    pad[side] = pick(padding, padding_count, side, 0);
    gap[side] = pick(dilation, dilation_count, side, 1);
  }
  const int64_t height = x->shape[2], width = x->shape[3];
  const int64_t windows = values->shape[2] * values->shape[3];
  for (int64_t i = 0; i < values->numel; ++i, ++value, ++index) {
    if (i > 0 && i % windows == 0) plane += height * width;
    const int64_t top = i % windows / values->shape[3] * step[0] - pad[0];
    const int64_t left = i % values->shape[3] * step[1] - pad[1];
    *value = -INFINITY;
    *index = -1;
    for (int64_t h = top; h < top + size[0] * gap[0]; h += gap[0]) {
      for (int64_t w = left; w < left + size[1] * gap[1]; w += gap[1]) {
        if (h < 0 || h >= height || w < 0 || w >= width) continue;
        const float candidate = plane[h * width + w];
        if (*index >= 0 && !(candidate > *value || candidate != candidate)) continue;
        if (*value != *value) continue; /* the first NaN stays */
        *value = candidate;
        *index = h * width + w;
      }
    }
  }
  return TENON_OK;
}
TENON_BOX_max_pool2d_with_indices(toy_max_pool2d_with_indices_boxed, toy_max_pool2d_with_indices);

/* ==== Matrix product ========================================================================== */

/* Matrices, and batches of them that do not broadcast. */
static int32_t can_matmul(const tenon_value* args, uint32_t nargs) {
  (void)nargs;
  const tenon_tensor *x = args[0].v.p, *y = args[1].v.p;
  if (x->ndim < 2 || y->ndim < 2) return 0;
  if (y->ndim == 2) return 1; /* the same matrix for the whole batch */
  if (x->ndim != y->ndim) return 0;
  return memcmp(x->shape, y->shape, sizeof *x->shape * (size_t)(x->ndim - 2)) == 0;
}

static tenon_status toy_matmul(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                               tenon_tensor* out, tenon_err* err) {
  (void)ctx;
  const float* a = core_view(x, err);
  const float* b = core_view(y, err);
  float* o = core_view(out, err);
  if (!a || !b || !o) return TENON_INTERNAL;
  if (out->numel == 0) return TENON_OK;
  const int64_t inner = x->shape[x->ndim - 1], columns = out->shape[out->ndim - 1];
  const int64_t rows = y->ndim == 2 ? out->numel / columns : out->shape[out->ndim - 2];
  memset(o, 0, sizeof *o * (size_t)out->numel);
  for (float* const end = o + out->numel; o < end; b += inner * columns)
    for (int64_t r = 0; r < rows; ++r, a += inner, o += columns)
      for (int64_t k = 0; k < inner; ++k)
        for (int64_t c = 0; c < columns; ++c) o[c] += a[k] * b[k * columns + c];
  return TENON_OK;
}
TENON_BOX_matmul(toy_matmul_boxed, toy_matmul);

/* ==== The table =============================================================================== */

/* clang-format off */
static tenon_kernel_def kernels[] = {
#define KERNEL(op) TENON_KERNEL_##op(toy_##op, NULL, MASK(F32), 0, 0)
    KERNEL(negative), KERNEL(abs), KERNEL(exp), KERNEL(log), KERNEL(sqrt), KERNEL(rsqrt),
    KERNEL(square), KERNEL(reciprocal), KERNEL(tanh), KERNEL(relu), KERNEL(relu_grad),
    KERNEL(isfinite),
    KERNEL(add), KERNEL(subtract), KERNEL(multiply), KERNEL(divide), KERNEL(pow),
    KERNEL(maximum), KERNEL(minimum), KERNEL(where), KERNEL(lerp),
    KERNEL(equal), KERNEL(not_equal), KERNEL(greater), KERNEL(greater_equal), KERNEL(less),
    KERNEL(less_equal),
    KERNEL(sum), KERNEL(mean), KERNEL(max), KERNEL(min), KERNEL(matmul),
    KERNEL(gather), KERNEL(scatter_add), KERNEL(max_pool2d_with_indices),
    TENON_KERNEL_full(toy_full, NULL, CONVERTIBLE, 0, 0),
    TENON_KERNEL_cast(toy_cast, NULL, CONVERTIBLE, 0, 0),
    TENON_KERNEL_clone(toy_clone, NULL, MASK(COUNT) - 1,
                       TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT, 0),
};
/* clang-format on */

const tenon_kernel_def* toy_kernels(uint32_t* count) {
  for (uint32_t i = 0; i < COUNT(kernels); ++i) {
    if (kernels[i].boxed == toy_matmul_boxed) kernels[i].can_run = can_matmul;
    if (kernels[i].boxed == toy_cast_boxed) kernels[i].can_run = can_cast;
    if (kernels[i].boxed == toy_gather_boxed) kernels[i].can_run = can_index;
    if (kernels[i].boxed == toy_scatter_add_boxed) kernels[i].can_run = can_index;
  }
  static tenon_kernel_def
      all[COUNT(kernels) + 16]; /* and the primitives, of which there are eleven */
  *count = 0;
  for (uint32_t i = 0; i < COUNT(kernels); ++i) all[(*count)++] = kernels[i];
  for (uint32_t i = 0; i < toy_primitive_count && *count < COUNT(all); ++i)
    all[(*count)++] = toy_primitives[i];
  return all;
}
