/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "validation", version 1: every kernel call is watched for what kernels must not do.
 *
 * While it is on, results lie between guard bands and are filled before the call; a kernel that
 * writes outside its result or into an argument, or leaves elements of a result unwritten, fails
 * with TENON_INTERNAL and a text that names operator, plugin, result and byte. docs/overrides.md
 * tells what is seen and what is not. */
#ifndef TENON_SERVICES_VALIDATION_H_
#define TENON_SERVICES_VALIDATION_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_VALIDATION_SERVICE "validation"
#define TENON_VALIDATION_VERSION 1u

typedef struct tenon_validation_options {
  uint32_t struct_size;
  uint32_t flags; /* TENON_VALIDATION_* */
  double rtol;    /* of COMPARE_HOST; negative: what suits the dtype */
  double atol;
} tenon_validation_options;
enum {
  TENON_VALIDATION_NONFINITE = 1,   /* NaN or infinity from finite arguments is an error too */
  TENON_VALIDATION_COMPARE_HOST = 2 /* the host computes the same, and the results must be close */
};

typedef struct tenon_validation_api {
  uint32_t struct_size;
  uint32_t version;
  /* On for the calling thread, with these options (NULL: none), until pop; pushes nest. */
  tenon_status (*push)(const tenon_validation_options* options, tenon_err*);
  void (*pop)(void);
  /* Calls that this thread has had watched so far. */
  uint64_t (*calls)(void);
  /* Not 0 while a watched call of this thread runs: memory that a device plugin then makes for a
   * kernel should be filled as the results are, so that what is left unwritten shows. (appended) */
  int32_t (*is_watching)(void);
} tenon_validation_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_VALIDATION_H_ */
