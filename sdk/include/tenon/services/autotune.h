/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "autotune", version 1: the fastest of the kernels that can run a call, found by measuring.
 *
 * Off until a program enables it or TENON_AUTOTUNE is set; plugins/autotune implements it. What is
 * remembered lies in one file for each device and version of Tenon, in the folder TENON_AUTOTUNE_CACHE
 * (by default $XDG_CACHE_HOME/tenon/autotune or ~/.cache/tenon/autotune; `off`: in memory alone). */
#ifndef TENON_SERVICES_AUTOTUNE_H_
#define TENON_SERVICES_AUTOTUNE_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_AUTOTUNE_SERVICE "autotune"
#define TENON_AUTOTUNE_VERSION 1u

typedef struct tenon_autotune_api {
  uint32_t struct_size;
  uint32_t version;
  /* Choose kernels by time in calls of this thread, until pop; nests. flags: TENON_AUTOTUNE_*. */
  tenon_status (*push)(uint32_t flags, tenon_err*);
  void (*pop)(void);
  /* JSON: every call that was decided in this process, with the time of each candidate. */
  void (*report)(tenon_sink_fn, void* user);
  /* Forget what this process has decided, and with TENON_AUTOTUNE_FILES what the files hold. */
  tenon_status (*clear)(uint32_t flags, tenon_err*);
} tenon_autotune_api;
enum {
  TENON_AUTOTUNE_MEASURE =
      1,                   /* push: measure calls that are new; without, only use what is known */
  TENON_AUTOTUNE_FILES = 2 /* clear: the files as well */
};

/* Service "<plugin>.library", version 1. A plugin whose kernels stand on a library with a version of its
 * own offers it, so that measurements are repeated when that library changes. */
#define TENON_KERNEL_LIBRARY_SUFFIX ".library"
#define TENON_KERNEL_LIBRARY_VERSION 1u
typedef struct tenon_kernel_library_api {
  uint32_t struct_size;
  uint32_t version;
  /* "oneDNN 2.6.3"; NULL: the library cannot be used. Opens it at the first call. */
  const char* (*name)(void);
  /* What keeps it from being used, and how to change that; NULL: nothing. */
  const char* (*problem)(void);
  /* (appended) The same for the kernels of one operator ("tenon::conv2d"), where a plugin stands on several libraries.
   * An empty name: they stand on none. */
  const char* (*name_for)(const char* op);
  const char* (*problem_for)(const char* op);
  /* (appended) What a kernel of this plugin runs for arguments that it accepts, in the words of the library: "algorithm 1,
   * 4096 bytes of workspace". Writes at most `room` bytes with the final 0, which is all that it writes where there is
   * nothing to say. */
  void (*describe)(const tenon_kernel_def*, const tenon_value* args, uint32_t nargs, char* out,
                   uint32_t room);
} tenon_kernel_library_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_AUTOTUNE_H_ */
