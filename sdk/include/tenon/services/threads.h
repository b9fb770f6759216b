/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "threads", version 1: pools of threads beside the process's one. A thread that has work which others must not
 * slow down runs its parallel loops (host->parallel_for) on a pool of its own; host->thread_count then says how many
 * threads that has. The host itself offers it. */
#ifndef TENON_SERVICES_THREADS_H_
#define TENON_SERVICES_THREADS_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_THREADS_SERVICE "threads"
#define TENON_THREADS_VERSION 1u

typedef struct tenon_thread_pool tenon_thread_pool;

typedef struct tenon_thread_pool_options {
  uint32_t struct_size;
  int32_t threads; /* in [1, 1024], with the thread that calls a loop */
  int32_t
      spin_microseconds; /* that a thread without work waits before it sleeps; -1: as those of the process's pool */
  uint32_t reserved;
} tenon_thread_pool_options;

typedef struct tenon_threads_api {
  uint32_t struct_size;
  uint32_t version;
  /* Threads start with the first loop that needs them. TENON_INVALID_ARGUMENT: numbers out of their range. */
  tenon_status (*pool_create)(const tenon_thread_pool_options*, tenon_thread_pool** out,
                              tenon_err*);
  /* Loops of the calling thread run on this pool from now on, NULL: on the process's. Returns what it was before. Where
   * two threads use one pool at once, one of them runs its loop alone. Inside a loop it changes nothing. */
  tenon_thread_pool* (*pool_use)(tenon_thread_pool*);
  /* Ends the pool's threads. No thread uses it, and none will. */
  void (*pool_destroy)(tenon_thread_pool*);
} tenon_threads_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_THREADS_H_ */
