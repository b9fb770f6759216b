/* SPDX-License-Identifier: Apache-2.0
 *
 * The template's device with as few kernels as level L1 takes: of each primitive that can be made of others, what
 * those are made of (docs/primitives.md, "What a device may leave out"). */
#define acme_kernels all_kernels
#define acme_kernel_count all_kernel_count
#include "kernels/primitives.c"
#undef acme_kernels
#undef acme_kernel_count

static int is(const tenon_value* x, uint64_t dtypes) {
  return (int)(dtypes >> tenon_arg_tensor(x)->dtype & 1);
}

static int32_t can_unary(const tenon_value* args, uint32_t nargs) {
  (void)nargs;
  switch (args[1].v.i) {
    case TENON_UNARY_ROUND:
    case TENON_UNARY_TRUNC:
    case TENON_UNARY_CBRT:
    case TENON_UNARY_EXPM1:
    case TENON_UNARY_LOG2:
    case TENON_UNARY_LOG10:
      return 0;
    case TENON_UNARY_ERFC: /* made for float32 alone */
    case TENON_UNARY_LGAMMA:
      return is(&args[0], BIT(F64));
    case TENON_UNARY_SIGN:
    case TENON_UNARY_INVERT:
      return is(&args[0], FLOATS);
    default:
      return 1;
  }
}

static int32_t can_binary(const tenon_value* args, uint32_t nargs) {
  (void)nargs;
  const tenon_value* x = args[0].tag == TENON_VALUE_TENSOR ? &args[0] : &args[1];
  switch (args[2].v.i) {
    case TENON_BINARY_FLOOR_DIVIDE:
    case TENON_BINARY_REMAINDER:
    case TENON_BINARY_HYPOT:
    case TENON_BINARY_COPYSIGN:
    case TENON_BINARY_NEXTAFTER:
      return 0;
    case TENON_BINARY_FMOD:
      return is(x, BIT(F64));
    case TENON_BINARY_POW:
      return is(x, FLOATS);
    case TENON_BINARY_AND:
    case TENON_BINARY_OR:
    case TENON_BINARY_XOR:
      return is(x, BIT(BOOL));
    case TENON_BINARY_SHIFT_LEFT:
    case TENON_BINARY_SHIFT_RIGHT:
      return 0;
    default:
      return 1;
  }
}

static int32_t can_reduce(const tenon_value* args, uint32_t nargs) {
  (void)nargs;
  return args[1].v.i == TENON_REDUCTION_SUM && is(&args[0], FLOATS);
}

static int32_t can_scatter(const tenon_value* args, uint32_t nargs) {
  (void)nargs;
  return args[3].v.i == TENON_SCATTER_ASSIGN ? is(&args[0], BIT(I32) | BIT(I64))
                                             : is(&args[0], FLOATS);
}

#define KERNEL(NAME, FN, DTYPES, TRAITS, CAN_RUN)                                             \
  {                                                                                           \
    sizeof(tenon_kernel_def), TRAITS, "tenon::" #NAME, NULL, TENON_HASH_##NAME, DTYPES, 0, 0, \
        FN##_boxed, (tenon_typed_fn)FN, CAN_RUN                                               \
  }

const tenon_kernel_def acme_kernels[] = {
    KERNEL(primitive_copy, copy, SERVED, TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT, can_copy),
    KERNEL(primitive_unary, unary, INTEGERS | FLOATS, TENON_KERNEL_STRIDED, can_unary),
    KERNEL(primitive_binary, binary, SERVED, TENON_KERNEL_STRIDED, can_binary),
    KERNEL(primitive_compare, compare, SERVED, TENON_KERNEL_STRIDED, NULL),
    KERNEL(primitive_select, choose, BIT(BOOL) | BIT(I32) | BIT(I64) | BIT(F32),
           TENON_KERNEL_STRIDED, NULL),
    KERNEL(primitive_reduce, reduce, FLOATS, 0, can_reduce),
    KERNEL(primitive_gather, gather, BIT(I32) | BIT(I64), 0, NULL),
    KERNEL(primitive_scatter, scatter, SERVED, 0, can_scatter),
    KERNEL(primitive_iota, iota, SERVED, 0, NULL),
    KERNEL(primitive_random, words, BIT(I64), 0, NULL),
};
const uint32_t acme_kernel_count = sizeof acme_kernels / sizeof *acme_kernels;
