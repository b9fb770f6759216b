/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "candidates", version 1: every kernel that can run a call, and a call by one of them.
 *
 * The host itself offers it. The dispatcher runs the kernel with the highest score that accepts the
 * arguments; a layer that knows better (because it has measured them: plugins/autotune) lists the
 * candidates and calls one. Kernels that plugins bring as optional are candidates; kernels that are
 * held back until the user agrees are not. */
#ifndef TENON_SERVICES_CANDIDATES_H_
#define TENON_SERVICES_CANDIDATES_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_CANDIDATES_SERVICE "candidates"
#define TENON_CANDIDATES_VERSION 1u

/* A kernel whose score is this or lower is optional, also of a plugin that is not: one of several ways to the same result, as the
 * algorithms of a library, among which measuring decides. Hosts without this rule ask such kernels last. */
#define TENON_SCORE_OPTIONAL (-0x40000000)

/* One kernel that may run a call. The host fills an array of these, so its stride never changes. */
typedef struct tenon_candidate {
  const void* handle;             /* for `call`; valid while `generation` stays the same */
  const tenon_kernel_def* kernel; /* as the plugin registered it */
  const char* plugin;             /* "acme" */
  const char* origin;             /* "acme 1.4.2 (/path/libtenon_acme.so)" */
  uint32_t flags;                 /* TENON_CANDIDATE_* */
  uint32_t index;                 /* among the kernels of this plugin in this list */
  uint64_t reserved[3];
} tenon_candidate;
enum {
  TENON_CANDIDATE_CHOSEN = 1,   /* what runs if no layer chooses another one */
  TENON_CANDIDATE_DECLINES = 2, /* its can_run does not accept these arguments */
  TENON_CANDIDATE_OPTIONAL = 4  /* the dispatcher does not use it by itself */
};

typedef struct tenon_candidates_api {
  uint32_t struct_size;
  uint32_t version;
  /* Counts what may change the answers below: plugins that come and go, consent to overrides. */
  uint64_t (*generation)(void);
  /* The kernels for a call with complete arguments, as a layer gets them: first those that the
   * dispatcher uses, in its order, then optional ones. At most `capacity` go to `out`; `*count` receives
   * how many there are. None: the operator makes views, or is lowered or run on the host. An error is
   * that of the call itself. */
  tenon_status (*list)(const tenon_op*, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                       uint32_t nouts, tenon_candidate* out, uint32_t capacity, uint32_t* count,
                       tenon_err*);
  /* As op_call_below, with the kernel of a candidate. Where that kernel does not accept the arguments,
   * is not one of this operator, or where a layer below wants the call, this is op_call_below. */
  tenon_status (*call)(int32_t layer, const tenon_op*, tenon_value* args, uint32_t nargs,
                       tenon_value* outs, uint32_t nouts, const void* handle, tenon_err*);
  /* (appended) While on, the dispatcher holds back kernels with TENON_KERNEL_NONDETERMINISTIC, on all
   * threads: what they would serve is lowered, run on the host, or an error. */
  void (*set_deterministic)(int32_t on);
  int32_t (*deterministic)(void);
} tenon_candidates_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_CANDIDATES_H_ */
