/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "isolated", version 1: device plugins in processes of their own (docs/isolated.md).
 *
 *   const tenon_isolated_api* isolated = host->service_find("isolated", 1);
 *
 * What was loaded is unloaded with host->plugin_unload, like any other plugin. */
#ifndef TENON_SERVICES_ISOLATED_H_
#define TENON_SERVICES_ISOLATED_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_ISOLATED_SERVICE "isolated"
#define TENON_ISOLATED_VERSION 1u

typedef struct tenon_isolated_request {
  uint32_t struct_size;
  uint32_t reserved;
  const char* path; /* of the plugin */
  /* (optional) Folders where the process looks for operators, and for kernels of others for the
   * device, besides the folders that every host searches; separated by ':'. */
  const char* folders;
  /* A process that leaves one request unanswered for so long is ended; 0: the default, 300 s or
   * TENON_ISOLATED_DEADLINE (seconds). */
  uint64_t deadline_ns;
} tenon_isolated_request;

typedef struct tenon_isolated_api {
  uint32_t struct_size;
  uint32_t version;
  /* Load a device plugin in a new process, and publish its device here under the same name.
   *
   * If the process dies, for whatever reason, the call under way and all later ones fail with
   * TENON_UNAVAILABLE. What was in the device's memory is lost, nothing else is. */
  tenon_status (*load)(const tenon_isolated_request*, tenon_err*);
} tenon_isolated_api;

#ifdef __cplusplus
}
#endif
#endif /* TENON_SERVICES_ISOLATED_H_ */
