/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "libraries", version 1: libraries of code that are no plugins of Tenon, such as those written
 * for another framework. The host itself offers it. Such a library runs with all rights of the
 * process, as a plugin does, and so its file is held to the same rules: owner and mode of the file,
 * of the folders above it and of those that it searches, and TENON_PLUGIN_POLICY. */
#ifndef TENON_SERVICES_LIBRARIES_H_
#define TENON_SERVICES_LIBRARIES_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_LIBRARIES_SERVICE "libraries"
#define TENON_LIBRARIES_VERSION 1u

enum {
  TENON_LIBRARY_LAZY = 1, /* functions are looked for at their first call (RTLD_LAZY) */
  /* The path was found in a folder, and not said by the program: TENON_PLUGIN_TRUST=any does not
   * apply. */
  TENON_LIBRARY_FOUND = 2
};

/* Valid for the life of the process. */
typedef struct tenon_library {
  void* handle; /* as dlopen returns it; it is never closed */
  /* What dladdr called the library while its constructors ran. This is not its path where a policy has
   * made the host open a copy of the file; afterwards dladdr gives the path. */
  const char* opened_as;
} tenon_library;

typedef struct tenon_libraries_api {
  uint32_t struct_size;
  uint32_t version;
  /* Opens the library at `path`, which has a slash, and shows its symbols to no other. A text ends
   * with the reason, such as [WRITABLE], that docs/plugins.md explains. One library is loaded at a
   * time, plugins included: its constructors may load others in the thread that runs them, and wait
   * for no other thread that does. */
  tenon_status (*open)(const char* path, uint32_t flags, tenon_library* out, tenon_err*);
} tenon_libraries_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_LIBRARIES_H_ */
