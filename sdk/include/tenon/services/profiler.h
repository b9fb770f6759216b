/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "profiler", version 1: the operator calls of a thread, seen from outside.
 *
 * Off until a program starts it; plugins/profiler implements it by a layer between mixed precision and
 * autograd. It sees operators with the dtypes they compute in, composites whole where one kernel
 * serves them and their parts elsewhere, casts, and what backward passes call. What lowering calls is not seen: the call that is lowered is. */
#ifndef TENON_SERVICES_PROFILER_H_
#define TENON_SERVICES_PROFILER_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_PROFILER_SERVICE "profiler"
#define TENON_PROFILER_VERSION 1u

/* One piece of work on a thread. Times are nanoseconds of CLOCK_MONOTONIC. */
typedef struct tenon_call_record {
  uint64_t begin_ns;
  uint64_t end_ns; /* MEMORY: bytes in use */
  uint32_t
      what; /* OPERATOR: the operator's id; SCOPE: the number that scope_begin got; MEMORY: the device */
  uint16_t kind;  /* TENON_RECORD_* */
  uint16_t flags; /* TENON_RECORD_FAILED, _BACKWARD */
  uint32_t
      shapes; /* where the shapes of the arguments begin in the details, plus 1; 0: not recorded */
  uint32_t stack; /* what tenon_record_options.stack returned; 0: not recorded */
} tenon_call_record;
enum { TENON_RECORD_OPERATOR = 0, TENON_RECORD_SCOPE = 1, TENON_RECORD_MEMORY = 2 };
enum {
  TENON_RECORD_FAILED = 1,
  TENON_RECORD_BACKWARD = 2 /* called by a backward pass */
};

typedef struct tenon_record_options {
  uint32_t struct_size;
  uint32_t flags;    /* TENON_RECORD_WITH_* */
  uint64_t capacity; /* records that are kept; later ones are counted as lost */
  /* (optional) A number for the caller's stack, above 0; called after every call. */
  uint32_t (*stack)(void* user);
  void* user;
} tenon_record_options;
enum {
  TENON_RECORD_WITH_SHAPES = 1,
  TENON_RECORD_WITH_MEMORY =
      2 /* after every call, the bytes in use on the device of its first result */
};

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
  /* Record the calls of this thread until record_stop; TENON_FAILED_PRECONDITION if it does already. */
  tenon_status (*record_start)(const tenon_record_options* options, tenon_err*);
  void (*record_stop)(void);
  int32_t (*is_recording)(void);
  /* A piece of the program's own, from begin to the end that belongs to it. No-ops where nothing records. */
  void (*scope_begin)(uint32_t what);
  void (*scope_end)(void);
  /* Take up to `capacity` of the thread's records out, in the order in which they ended, after
   * record_stop; returns how many. */
  uint64_t (*drain)(tenon_call_record* out, uint64_t capacity);
  /* Of the last recording: the details that records point into, valid until the next record_start, and how
   * many records were lost. For each tensor argument: dtype, ndim, sizes; -1 ends the arguments of a call. */
  const int64_t* (*details)(uint64_t* count, uint64_t* lost);
} tenon_profiler_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_PROFILER_H_ */
