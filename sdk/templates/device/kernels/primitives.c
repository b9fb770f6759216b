/* SPDX-License-Identifier: Apache-2.0
 *
 * The eleven kernels that every operator can be made of; tenon/primitives.h says what each opcode
 * means. They are written to be read: each computes element i of its result, which on a device of
 * many cores is the work of item i. Floats are computed in double and integers in int64, whatever
 * their own width: a dtype more is one case more in load and in store, and a bit in the masks. */
#include <tenon/op_signatures.h>
#include <tenon/primitives.h>

#include <math.h>
#include <stddef.h>

#include "../runtime/acme.h"

/* ==== Elements ================================================================================ */

#define BIT(name) (UINT64_C(1) << TENON_DTYPE_##name)
#define FLOATS (BIT(F32) | BIT(F64))
#define INTEGERS (BIT(U8) | BIT(I8) | BIT(U16) | BIT(I16) | BIT(U32) | BIT(I32) | BIT(I64))
#define SERVED (BIT(BOOL) | INTEGERS | FLOATS)

typedef struct Number {
  int is_float;    /* which of the two counts */
  int64_t integer; /* bool: 0 or 1 */
  double real;
} Number;

static Number whole(int64_t value) { return (Number){0, value, 0}; }
static Number real(double value) { return (Number){1, 0, value}; }

/* clang-format off */
static Number load(const tenon_tensor* t, int64_t i) {
  switch (t->dtype) {
    case TENON_DTYPE_F32: return real(((const float*)t->data)[i]);
    case TENON_DTYPE_F64: return real(((const double*)t->data)[i]);
    case TENON_DTYPE_I8: return whole(((const int8_t*)t->data)[i]);
    case TENON_DTYPE_U16: return whole(((const uint16_t*)t->data)[i]);
    case TENON_DTYPE_I16: return whole(((const int16_t*)t->data)[i]);
    case TENON_DTYPE_U32: return whole(((const uint32_t*)t->data)[i]);
    case TENON_DTYPE_I32: return whole(((const int32_t*)t->data)[i]);
    case TENON_DTYPE_I64: return whole(((const int64_t*)t->data)[i]);
    default: return whole(((const uint8_t*)t->data)[i]); /* u8 and bool */
  }
}

/* In the dtype of `t`, converted as the operator cast does it. */
static void store(tenon_tensor* t, int64_t i, Number x) {
  const double as_real = x.is_float ? x.real : (double)x.integer;
  const int64_t as_whole = x.is_float ? (int64_t)x.real : x.integer;
  switch (t->dtype) {
    case TENON_DTYPE_F32: ((float*)t->data)[i] = (float)as_real; return;
    case TENON_DTYPE_F64: ((double*)t->data)[i] = as_real; return;
    case TENON_DTYPE_BOOL: ((uint8_t*)t->data)[i] = as_real != 0; return;
    case TENON_DTYPE_U8:
    case TENON_DTYPE_I8: ((uint8_t*)t->data)[i] = (uint8_t)as_whole; return;
    case TENON_DTYPE_U16:
    case TENON_DTYPE_I16: ((uint16_t*)t->data)[i] = (uint16_t)as_whole; return;
    case TENON_DTYPE_U32:
    case TENON_DTYPE_I32: ((uint32_t*)t->data)[i] = (uint32_t)as_whole; return;
    default: ((int64_t*)t->data)[i] = as_whole;
  }
}
/* clang-format on */

static tenon_status unknown(tenon_err* err) {
  return acme_fail(err, TENON_UNSUPPORTED, "acme: this opcode is newer than the plugin; update it");
}

/* ==== Strides ================================================================================= */

/* Where element i, counted in row-major order, lies in memory. */
static int64_t place_of(const tenon_tensor* t, int64_t i) {
  if (t->flags & TENON_TENSOR_CONTIGUOUS) return i;
  int64_t place = 0;
  for (int32_t axis = t->ndim - 1; axis >= 0; i /= t->shape[axis--])
    place += i % t->shape[axis] * t->strides[axis];
  return place;
}

static Number at(const tenon_tensor* t, int64_t i) { return load(t, place_of(t, i)); }

/* The one kernel that must take any strides, on both sides. */
static tenon_status copy(tenon_ctx* ctx, const tenon_tensor* x, int32_t dtype, tenon_tensor* out,
                         tenon_err* err) {
  (void)ctx, (void)dtype, (void)err;
  for (int64_t i = 0; i < out->numel; ++i) store(out, place_of(out, i), at(x, i));
  return TENON_OK;
}
TENON_BOX_primitive_copy(copy_boxed, copy);

/* Conversions to other dtypes are left to the host. */
static int32_t can_copy(const tenon_value* args, uint32_t nargs) {
  (void)nargs;
  return (int32_t)(SERVED >> tenon_arg_id(&args[1]) & 1);
}

/* ==== Elementwise ============================================================================= */

/* Results are contiguous; inputs, by TENON_KERNEL_STRIDED, need not be, which saves copies of what
 * is repeated by broadcasting. */

static double sign_of(double x) { return x != x ? x : (x > 0) - (x < 0); }
static double negative(double x) { return -x; }

/* By TENON_UNARY_ number. */
/* clang-format off */
static double (*const functions[])(double) = {
    negative, fabs, sign_of, NULL /* INVERT, of integers */, floor, ceil, nearbyint, trunc, sqrt, cbrt,
    exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh,
    asinh, acosh, atanh, erf, erfc, lgamma};
/* clang-format on */
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Unsigned arithmetic wraps around where signed would be undefined. */
static int64_t plus(int64_t x, int64_t y) { return (int64_t)((uint64_t)x + (uint64_t)y); }
static int64_t times(int64_t x, int64_t y) { return (int64_t)((uint64_t)x * (uint64_t)y); }

static tenon_status unary(tenon_ctx* ctx, const tenon_tensor* x, int64_t op, tenon_tensor* out,
                          tenon_err* err) {
  (void)ctx;
  if (op < 0 || op >= FUNCTIONS) return unknown(err);
  for (int64_t i = 0; i < out->numel; ++i) {
    const Number a = at(x, i);
    if (a.is_float && functions[op])
      store(out, i, real(functions[op](a.real)));
    else if (!a.is_float && op == TENON_UNARY_INVERT)
      store(out, i, whole(~a.integer));
    else if (!a.is_float && op == TENON_UNARY_SIGN)
      store(out, i, whole((a.integer > 0) - (a.integer < 0)));
    else if (!a.is_float && (op == TENON_UNARY_NEGATIVE || op == TENON_UNARY_ABS))
      store(out, i,
            whole(op == TENON_UNARY_ABS && a.integer > 0 ? a.integer : times(a.integer, -1)));
    else
      return unknown(err);
  }
  return TENON_OK;
}
TENON_BOX_primitive_unary(unary_boxed, unary);

/* Remainder with the sign of y, and the quotient that belongs to it. */
static double real_remainder(double x, double y) {
  const double r = fmod(x, y);
  return r == 0 ? copysign(0, y) : (r < 0) != (y < 0) ? r + y : r;
}
static double real_floor_divide(double x, double y) {
  if (y == 0) return x / y;
  const double r = fmod(x, y), below = r != 0 && (r < 0) != (y < 0);
  const double quotient = nearbyint((x - r) / y) - below;
  return quotient == 0 ? copysign(0, x / y) : quotient;
}

/* clang-format off */
static double real_binary(int64_t op, double x, double y) {
  switch (op) {
    case TENON_BINARY_ADD: return x + y;
    case TENON_BINARY_SUBTRACT: return x - y;
    case TENON_BINARY_MULTIPLY: return x * y;
    case TENON_BINARY_DIVIDE: return x / y;
    case TENON_BINARY_FLOOR_DIVIDE: return real_floor_divide(x, y);
    case TENON_BINARY_REMAINDER: return real_remainder(x, y);
    case TENON_BINARY_FMOD: return fmod(x, y);
    case TENON_BINARY_POW: return pow(x, y);
    case TENON_BINARY_ATAN2: return atan2(x, y);
    case TENON_BINARY_HYPOT: return hypot(x, y);
    case TENON_BINARY_COPYSIGN: return copysign(x, y);
    case TENON_BINARY_NEXTAFTER: return nextafter(x, y);
    case TENON_BINARY_MAXIMUM: return x > y || x != x ? x : y;
    default: return x < y || x != x ? x : y; /* MINIMUM */
  }
}
/* clang-format on */

static int64_t whole_fmod(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
static int64_t whole_remainder(int64_t x, int64_t y) {
  const int64_t r = whole_fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static int64_t whole_floor_divide(int64_t x, int64_t y) {
  if (y == 0 || y == -1) return times(x, y); /* 0, or the negative, which wraps */
  return x / y - (whole_fmod(x, y) != 0 && (x < 0) != (y < 0));
}
static int64_t whole_pow(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  int64_t result = 1;
  for (; y > 0; y /= 2, x = times(x, x))
    if (y % 2) result = times(result, x);
  return result;
}

/* clang-format off */
static int64_t whole_binary(int64_t op, int64_t x, int64_t y) {
  switch (op) {
    case TENON_BINARY_ADD: return plus(x, y);
    case TENON_BINARY_SUBTRACT: return plus(x, times(y, -1));
    case TENON_BINARY_MULTIPLY: return times(x, y);
    case TENON_BINARY_FLOOR_DIVIDE: return whole_floor_divide(x, y);
    case TENON_BINARY_REMAINDER: return whole_remainder(x, y);
    case TENON_BINARY_FMOD: return whole_fmod(x, y);
    case TENON_BINARY_POW: return whole_pow(x, y);
    case TENON_BINARY_MAXIMUM: return x > y ? x : y;
    case TENON_BINARY_MINIMUM: return x < y ? x : y;
    case TENON_BINARY_AND: return x & y;
    case TENON_BINARY_OR: return x | y;
    case TENON_BINARY_XOR: return x ^ y;
    case TENON_BINARY_SHIFT_LEFT: return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
    default: return y < 0 ? 0 : x >> (y > 63 ? 63 : y); /* SHIFT_RIGHT */
  }
}
/* clang-format on */

static Number combine(int64_t op, Number x, Number y) {
  return x.is_float ? real(real_binary(op, x.real, y.real))
                    : whole(whole_binary(op, x.integer, y.integer));
}

static tenon_status binary(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y, int64_t op,
                           tenon_tensor* out, tenon_err* err) {
  (void)ctx;
  const int of_floats = (FLOATS >> x->dtype & 1) != 0;
  const int only_floats =
      op == TENON_BINARY_DIVIDE || (op >= TENON_BINARY_ATAN2 && op <= TENON_BINARY_NEXTAFTER);
  if (op < 0 || op > (of_floats ? TENON_BINARY_MINIMUM : TENON_BINARY_SHIFT_RIGHT))
    return unknown(err);
  if (only_floats && !of_floats) return unknown(err);
  for (int64_t i = 0; i < out->numel; ++i) {
    const Number a = at(x, i), b = at(y, i);
    if (op == TENON_BINARY_NEXTAFTER && x->dtype == TENON_DTYPE_F32) /* not the next double */
      store(out, i, real(nextafterf((float)a.real, (float)b.real)));
    else
      store(out, i, combine(op, a, b));
  }
  return TENON_OK;
}
TENON_BOX_primitive_binary(binary_boxed, binary);

static tenon_status compare(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                            int64_t op, tenon_tensor* out, tenon_err* err) {
  (void)ctx;
  if (op < 0 || op > TENON_COMPARE_LESS_EQUAL) return unknown(err);
  for (int64_t i = 0; i < out->numel; ++i) {
    const Number a = at(x, i), b = at(y, i);
    const int less = a.is_float ? a.real < b.real : a.integer < b.integer;
    const int equal = a.is_float ? a.real == b.real : a.integer == b.integer;
    const int answers[] = {equal, !equal, less, less || equal}; /* by TENON_COMPARE_ number */
    store(out, i, whole(answers[op]));
  }
  return TENON_OK;
}
TENON_BOX_primitive_compare(compare_boxed, compare);

static tenon_status choose(tenon_ctx* ctx, const tenon_tensor* condition, const tenon_tensor* x,
                           const tenon_tensor* y, tenon_tensor* out, tenon_err* err) {
  (void)ctx, (void)err;
  for (int64_t i = 0; i < out->numel; ++i) store(out, i, at(at(condition, i).integer ? x : y, i));
  return TENON_OK;
}
TENON_BOX_primitive_select(choose_boxed, choose);

/* ==== Reduction and product =================================================================== */

/* x is [outer, n, inner], out [outer, inner]. */
static tenon_status reduce(tenon_ctx* ctx, const tenon_tensor* x, int64_t op, tenon_tensor* out,
                           tenon_err* err) {
  static const int64_t steps[] = {TENON_BINARY_ADD, TENON_BINARY_MULTIPLY, TENON_BINARY_MAXIMUM,
                                  TENON_BINARY_MINIMUM}; /* by TENON_REDUCTION_ number */
  (void)ctx;
  if (op < 0 || op > TENON_REDUCTION_MIN) return unknown(err);
  const int64_t n = x->shape[1], inner = x->shape[2];
  for (int64_t i = 0; i < out->numel; ++i) {
    const int64_t first = i / inner * n * inner + i % inner;
    Number result = load(x, first);
    for (int64_t k = 1; k < n; ++k) result = combine(steps[op], result, load(x, first + k * inner));
    store(out, i, result);
  }
  return TENON_OK;
}
TENON_BOX_primitive_reduce(reduce_boxed, reduce);

/* x is [batch, m, k], y [batch, k, n], out [batch, m, n]. */
static tenon_status contract(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                             tenon_tensor* out, tenon_err* err) {
  (void)ctx, (void)err;
  const int64_t m = x->shape[1], depth = x->shape[2], n = y->shape[2];
  for (int64_t i = 0; i < out->numel; ++i) {
    const int64_t row = i / n * depth, column = i / (m * n) * depth * n + i % n;
    Number sum = {(FLOATS >> x->dtype & 1) != 0, 0, 0};
    for (int64_t k = 0; k < depth; ++k) {
      const Number product =
          combine(TENON_BINARY_MULTIPLY, load(x, row + k), load(y, column + k * n));
      sum = combine(TENON_BINARY_ADD, sum, product);
    }
    store(out, i, sum);
  }
  return TENON_OK;
}
TENON_BOX_primitive_contract(contract_boxed, contract);

/* ==== Rows by position ======================================================================== */

static tenon_status check_position(int64_t row, int64_t n, tenon_err* err) {
  if (row >= 0 && row < n) return TENON_OK;
  return acme_fail(err, TENON_OUT_OF_RANGE, "acme: a position lies outside its axis");
}

/* x is [n, inner], index [m], out [m, inner]. */
static tenon_status gather(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                           tenon_tensor* out, tenon_err* err) {
  (void)ctx;
  const int64_t inner = x->shape[1];
  for (int64_t j = 0; j < index->numel; ++j) {
    const int64_t row = load(index, j).integer;
    if (check_position(row, x->shape[0], err) != TENON_OK) return TENON_OUT_OF_RANGE;
    for (int64_t k = 0; k < inner; ++k) store(out, j * inner + k, load(x, row * inner + k));
  }
  return TENON_OK;
}
TENON_BOX_primitive_gather(gather_boxed, gather);

static tenon_status scatter(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                            const tenon_tensor* source, int64_t op, tenon_tensor* out,
                            tenon_err* err) {
  (void)ctx;
  if (op != TENON_SCATTER_ASSIGN && op != TENON_SCATTER_ADD) return unknown(err);
  const int64_t inner = x->shape[1];
  for (int64_t i = 0; i < out->numel; ++i) store(out, i, load(x, i));
  for (int64_t j = 0; j < index->numel; ++j) {
    const int64_t row = load(index, j).integer;
    if (check_position(row, x->shape[0], err) != TENON_OK) return TENON_OUT_OF_RANGE;
    for (int64_t k = 0; k < inner; ++k) {
      const Number added = load(source, j * inner + k), old = load(out, row * inner + k);
      store(out, row * inner + k,
            op == TENON_SCATTER_ADD ? combine(TENON_BINARY_ADD, old, added) : added);
    }
  }
  return TENON_OK;
}
TENON_BOX_primitive_scatter(scatter_boxed, scatter);

/* ==== Numbers ================================================================================= */

static tenon_status iota(tenon_ctx* ctx, int64_t count, const tenon_value* start,
                         const tenon_value* step, int32_t dtype, int32_t device, tenon_tensor* out,
                         tenon_err* err) {
  (void)ctx, (void)dtype, (void)device, (void)err;
  const int of_floats = start->tag == TENON_VALUE_FLOAT || step->tag == TENON_VALUE_FLOAT;
  for (int64_t i = 0; i < count; ++i)
    store(out, i,
          of_floats ? real(tenon_arg_float(start) + (double)i * tenon_arg_float(step))
                    : whole(plus(start->v.i, times(i, step->v.i))));
  return TENON_OK;
}
TENON_BOX_primitive_iota(iota_boxed, iota);

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw, 2011): block `block` of the stream of `seed`. */
static void philox(uint64_t seed, uint64_t block, uint32_t c[4]) {
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  c[0] = (uint32_t)block, c[1] = (uint32_t)(block >> 32), c[2] = c[3] = 0;
  for (int round = 0; round < 10; ++round, key[0] += 0x9e3779b9u, key[1] += 0xbb67ae85u) {
    const uint64_t p = UINT64_C(0xd2511f53) * c[0], q = UINT64_C(0xcd9e8d57) * c[2];
    c[0] = (uint32_t)(q >> 32) ^ c[1] ^ key[0], c[1] = (uint32_t)q;
    c[2] = (uint32_t)(p >> 32) ^ c[3] ^ key[1], c[3] = (uint32_t)p;
  }
}

static tenon_status words(tenon_ctx* ctx, int64_t count, int32_t device, tenon_tensor* out,
                          tenon_err* err) {
  (void)device, (void)err;
  uint64_t seed, first;
  uint32_t block[4];
  acme_host->random_reserve(ctx, ((uint64_t)count + 3) / 4, &seed, &first);
  for (int64_t i = 0; i < count; ++i) {
    if (i % 4 == 0) philox(seed, first + (uint64_t)(i / 4), block);
    store(out, i, whole(block[i % 4]));
  }
  return TENON_OK;
}
TENON_BOX_primitive_random(words_boxed, words);

/* ==== The table =============================================================================== */

const tenon_kernel_def acme_kernels[] = {
    {sizeof(tenon_kernel_def), TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT,
     "tenon::primitive_copy", NULL, TENON_HASH_primitive_copy, SERVED, 0, 0, copy_boxed,
     (tenon_typed_fn)copy, can_copy},
    TENON_KERNEL_primitive_unary(unary, NULL, INTEGERS | FLOATS, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_primitive_binary(binary, NULL, SERVED, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_primitive_compare(compare, NULL, SERVED, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_primitive_select(choose, NULL, SERVED, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_primitive_reduce(reduce, NULL, SERVED, 0, 0),
    TENON_KERNEL_primitive_contract(contract, NULL, INTEGERS | FLOATS, 0, 0),
    TENON_KERNEL_primitive_gather(gather, NULL, SERVED, 0, 0),
    TENON_KERNEL_primitive_scatter(scatter, NULL, SERVED, 0, 0),
    TENON_KERNEL_primitive_iota(iota, NULL, SERVED, 0, 0),
    TENON_KERNEL_primitive_random(words, NULL, BIT(I64), 0, 0),
};
const uint32_t acme_kernel_count = sizeof acme_kernels / sizeof *acme_kernels;
