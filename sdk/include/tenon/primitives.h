/* SPDX-License-Identifier: Apache-2.0
 *
 * tenon/primitives.h - what the opcodes of the eleven primitives mean. C11 and C++20.
 *
 * A device with kernels for primitive_copy, _unary, _binary, _compare, _select, _reduce, _contract,
 * _gather, _scatter, _iota and _random runs every operator: those for which it has no kernel are
 * taken apart into these. Signatures are in the generated tenon/op_signatures.h, descriptions in
 * docs/primitives.md, and an example of all eleven in sdk/templates/device/primitives.c.
 *
 * What a kernel may rely on, unless its traits say that it takes more:
 *   - tensors are contiguous (primitive_copy alone must declare STRIDED and STRIDED_OUT);
 *   - the elementwise ones get inputs of the shape of the result and of one dtype;
 *   - extents may be 0, and then there is nothing to do;
 *   - an opcode it does not know is an error, TENON_UNSUPPORTED: lists only grow. One that `can_run`
 *     declines is made of others where that is possible (docs/primitives.md says which are).
 *
 * An opcode is the operator it is named after, for elements of the tensor's dtype. The float
 * functions are those of C's math.h with the accuracy the device has; kernels for float16, bfloat16
 * and float8 are not needed: the host converts to float32 and back by primitive_copy. Where
 * integers are served, arithmetic wraps around. X(number, NAME, operator, dtypes): I integers, F
 * floats, B bool.
 */
#ifndef TENON_PRIMITIVES_H_
#define TENON_PRIMITIVES_H_

/* clang-format off */

/* primitive_unary. Result and operand have one dtype. */
#define TENON_UNARY_OPS(X)                                                                         \
  X(0, NEGATIVE, negative, IF)                                                                     \
  X(1, ABS, abs, IF)           /* the smallest signed integer stays as it is */                    \
  X(2, SIGN, sign, IF)         /* -1, 0, 1; NaN for NaN */                                         \
  X(3, INVERT, bitwise_invert, I) /* all bits flipped */                                           \
  X(4, FLOOR, floor, F)                                                                            \
  X(5, CEIL, ceil, F)                                                                              \
  X(6, ROUND, round, F)        /* halves to even: nearbyint */                                     \
  X(7, TRUNC, trunc, F)                                                                            \
  X(8, SQRT, sqrt, F)                                                                              \
  X(9, CBRT, cbrt, F)                                                                              \
  X(10, EXP, exp, F)                                                                               \
  X(11, EXP2, exp2, F)                                                                             \
  X(12, EXPM1, expm1, F)                                                                           \
  X(13, LOG, log, F)                                                                               \
  X(14, LOG2, log2, F)                                                                             \
  X(15, LOG10, log10, F)                                                                           \
  X(16, LOG1P, log1p, F)                                                                           \
  X(17, SIN, sin, F)                                                                               \
  X(18, COS, cos, F)                                                                               \
  X(19, TAN, tan, F)                                                                               \
  X(20, ASIN, asin, F)                                                                             \
  X(21, ACOS, acos, F)                                                                             \
  X(22, ATAN, atan, F)                                                                             \
  X(23, SINH, sinh, F)                                                                             \
  X(24, COSH, cosh, F)                                                                             \
  X(25, TANH, tanh, F)                                                                             \
  X(26, ASINH, asinh, F)                                                                           \
  X(27, ACOSH, acosh, F)                                                                           \
  X(28, ATANH, atanh, F)                                                                           \
  X(29, ERF, erf, F)                                                                               \
  X(30, ERFC, erfc, F)                                                                             \
  X(31, LGAMMA, lgamma, F)     /* of |gamma(x)| */

/* primitive_binary. Result and operands have one dtype. */
#define TENON_BINARY_OPS(X)                                                                        \
  X(0, ADD, add, IF)                                                                               \
  X(1, SUBTRACT, subtract, IF)                                                                     \
  X(2, MULTIPLY, multiply, IF)                                                                     \
  X(3, DIVIDE, divide, F)                                                                          \
  X(4, FLOOR_DIVIDE, floor_divide, IF) /* integer by 0: 0; smallest by -1 wraps */                 \
  X(5, REMAINDER, remainder, IF)       /* sign of y, as Python's %; integer by 0: 0 */             \
  X(6, FMOD, fmod, IF)                 /* sign of x, as C's %; integer by 0: 0 */                  \
  X(7, POW, pow, IF)      /* integers wrap; to a negative power all but 1 and -1 become 0 */        \
  X(8, ATAN2, atan2, F)   /* x over y */                                                           \
  X(9, HYPOT, hypot, F)                                                                            \
  X(10, COPYSIGN, copysign, F)                                                                     \
  X(11, NEXTAFTER, nextafter, F)                                                                   \
  X(12, MAXIMUM, maximum, BIF) /* NaN if either is NaN */                                          \
  X(13, MINIMUM, minimum, BIF) /* NaN if either is NaN */                                          \
  X(14, AND, bitwise_and, BI)                                                                      \
  X(15, OR, bitwise_or, BI)                                                                        \
  X(16, XOR, bitwise_xor, BI)                                                                      \
  X(17, SHIFT_LEFT, bitwise_left_shift, I)   /* by a negative count or the width and more: 0 */    \
  X(18, SHIFT_RIGHT, bitwise_right_shift, I) /* keeps the sign; by the width and more, 0 or -1; by \
                                              * a negative count 0 */

/* primitive_compare. The result is bool. With NaN only NOT_EQUAL is true. */
#define TENON_COMPARE_OPS(X)      \
  X(0, EQUAL, equal, BIF)         \
  X(1, NOT_EQUAL, not_equal, BIF) \
  X(2, LESS, less, BIF)           \
  X(3, LESS_EQUAL, less_equal, BIF)

/* primitive_reduce. Result and operand have one dtype; sums of float32 are kept in float32 or wider.
 * MAX is how `any` is found of booleans, MIN how `all` is. */
#define TENON_REDUCTION_OPS(X) \
  X(0, SUM, sum, IF)           \
  X(1, PROD, prod, IF)         \
  X(2, MAX, max, BIF) /* NaN if any is NaN */ \
  X(3, MIN, min, BIF) /* NaN if any is NaN */

/* clang-format on */

enum {
#define TENON_NUMBER(number, NAME, op, dtypes) TENON_UNARY_##NAME = number,
  TENON_UNARY_OPS(TENON_NUMBER)
#undef TENON_NUMBER
#define TENON_NUMBER(number, NAME, op, dtypes) TENON_BINARY_##NAME = number,
      TENON_BINARY_OPS(TENON_NUMBER)
#undef TENON_NUMBER
#define TENON_NUMBER(number, NAME, op, dtypes) TENON_COMPARE_##NAME = number,
          TENON_COMPARE_OPS(TENON_NUMBER)
#undef TENON_NUMBER
#define TENON_NUMBER(number, NAME, op, dtypes) TENON_REDUCTION_##NAME = number,
              TENON_REDUCTION_OPS(TENON_NUMBER)
#undef TENON_NUMBER
                  TENON_SCATTER_ASSIGN = 0, /* primitive_scatter: replace rows, of any dtype */
  TENON_SCATTER_ADD = 1                     /* add to them; I and F */
};

#endif /* TENON_PRIMITIVES_H_ */
