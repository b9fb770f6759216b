/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "amp", version 1: automatic mixed precision. In a region, tensors that operators are given
 * are cast to the dtype that suits the operator: products of matrices get float16 or bfloat16, sums and
 * exponentials float32. Every operator's definition says which (TENON_OP_AMP_*; `amp` in its YAML entry).
 *
 * Casts are operators, made above autograd, so that gradients pass through them. Nothing is cached. Only
 * float16, bfloat16 and float32 are cast: a call with a float64, float8 or complex tensor stays as it is,
 * as does one that writes into a tensor of the caller's (in-place and out= forms). Backward passes compute
 * in the dtypes that the forward pass had; regions of the caller have no effect in them. */
#ifndef TENON_SERVICES_AMP_H_
#define TENON_SERVICES_AMP_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_AMP_SERVICE "amp"
#define TENON_AMP_VERSION 1u

/* What an operator's floats become. */
enum {
  TENON_AMP_KEEP = 0,  /* nothing else */
  TENON_AMP_LOW = 1,   /* the region's dtype */
  TENON_AMP_HIGH = 2,  /* float32 */
  TENON_AMP_WIDEST = 3 /* the widest among them; at level 2 the region's dtype */
};

/* One operator that the user has moved: it is not treated as its definition says. */
typedef struct tenon_amp_move {
  const tenon_op* op;
  uint32_t to; /* TENON_AMP_LOW or TENON_AMP_HIGH */
  uint32_t reserved;
} tenon_amp_move;

typedef struct tenon_amp_options {
  uint32_t struct_size;
  int32_t dtype;  /* TENON_DTYPE_F16 or TENON_DTYPE_BF16 */
  uint32_t level; /* 1: operators of LOW compute in `dtype`; 2: those of WIDEST as well */
  uint32_t nmoves;
  const tenon_amp_move* moves; /* copied */
} tenon_amp_options;

/* Casts that the regions of one thread have made so far. */
typedef struct tenon_amp_casts {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t to_low;
  uint64_t to_high;
  uint64_t bytes; /* written by them */
} tenon_amp_casts;

typedef struct tenon_amp_api {
  uint32_t struct_size;
  uint32_t version;
  /* Begin a region on the calling thread, until pop; NULL: one in which nothing is cast. Nests: the
   * innermost decides. A composite operator cannot be moved, as its parts are cast. */
  tenon_status (*push)(const tenon_amp_options* options, tenon_err*);
  void (*pop)(void);
  /* The dtype of the thread's region; -1: nothing is cast. */
  int32_t (*dtype)(void);
  /* What the thread's region, or a region of level 1 without moves, makes of an operator: TENON_AMP_*. */
  uint32_t (*class_of)(const tenon_op*);
  void (*casts)(tenon_amp_casts* out);
} tenon_amp_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_AMP_H_ */
