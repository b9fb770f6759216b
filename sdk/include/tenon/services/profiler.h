/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "profiler", version 1: the operator calls of a thread, seen from outside.
 *
 * Off until a program starts it; plugins/profiler implements it by a layer between mixed precision and
 * autograd. It sees operators with the dtypes they compute in, the parts of composites, casts, and what
 * backward passes call. What lowering calls is not seen: the call that is lowered is. */
#ifndef TENON_SERVICES_PROFILER_H_
#define TENON_SERVICES_PROFILER_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_PROFILER_SERVICE "profiler"
#define TENON_PROFILER_VERSION 1u

/* A function that is told of every call of a thread, for debugging. Calls that it makes itself are not
 * reported. */
typedef struct tenon_observer {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  /* After the call. If that failed, `status` says how, and `outs` hold what the caller gave; what is
   * returned is then ignored. Otherwise a status makes the call fail. Arguments and results are borrowed. */
  tenon_status (*after)(void* user, const tenon_op*, const tenon_value* args, uint32_t nargs,
                        const tenon_value* outs, uint32_t nouts, tenon_status status, tenon_err*);
} tenon_observer;

typedef struct tenon_profiler_api {
  uint32_t struct_size;
  uint32_t version;
  /* Tell `observer`, which is copied, of the calls of this thread until pop; nests, the innermost is
   * told. */
  tenon_status (*observe_push)(const tenon_observer* observer, tenon_err*);
  void (*observe_pop)(void);
} tenon_profiler_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_PROFILER_H_ */
