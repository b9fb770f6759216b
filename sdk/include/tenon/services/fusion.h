/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "fusion", version 1: one kernel for a group of elementwise calls, on devices that compile source.
 *
 * The plugin kernel_c offers it. What is prepared is run by an operator, so that streams, layers and memory are the
 * dispatcher's business: kernel_c::fused_1 to fused_4, of as many results, take the group's operands and the number that
 * `prepare` gave. The results have the bits that the calls would have had one by one. */
#ifndef TENON_SERVICES_FUSION_H_
#define TENON_SERVICES_FUSION_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_FUSION_SERVICE "fusion"
#define TENON_FUSION_VERSION 1u

/* One call of the group. */
typedef struct tenon_fusion_step {
  const tenon_kernel_def* kernel; /* that the dispatcher chose for it */
  const tenon_value* args;        /* complete; numbers for tensors are 0-d host scalars */
  /* For each tensor in `args` that is no host scalar, in their order: k >= 0 is operand k of the group, -1 - k the
   * result of its step k. */
  const int32_t* sources;
  uint32_t nargs;
  int32_t dtype;  /* of the result */
  int32_t result; /* its index among the results of the group; -1: the group alone reads it */
  uint32_t reserved;
} tenon_fusion_step;

typedef struct tenon_fusion_api {
  uint32_t struct_size;
  uint32_t version;
  /* `*program` receives a number above 0, the same for equal groups, which holds as long as the plugin is loaded; 0:
   * these calls do not fit into one kernel. `args` are copied. */
  tenon_status (*prepare)(const tenon_fusion_step* steps, uint32_t nsteps, uint32_t noperands,
                          uint32_t nresults, int64_t* program, tenon_err*);
  /* The operator for a group of that many results; NULL: there is none. */
  const tenon_op* (*fused)(uint32_t nresults);
} tenon_fusion_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_FUSION_H_ */
