/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "policy", version 2: what a site requires of a plugin's file before the file is opened.
 *
 * The host asks it if TENON_PLUGIN_POLICY is set to anything but `any`. Only a plugin in the host's
 * own folder is trusted; without one, no plugin is loaded. */
#ifndef TENON_SERVICES_POLICY_H_
#define TENON_SERVICES_POLICY_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_POLICY_SERVICE "policy"
#define TENON_POLICY_VERSION 2u

typedef struct tenon_policy_api {
  uint32_t struct_size;
  uint32_t version;
  /* May the library at `path`, absolute and without symbolic links, be opened under the policy of
   * that name ("pinned")? TENON_OK if so. Otherwise a text that says what to do about it, and
   * TENON_DATA_LOSS if its bytes are not those that were accepted, TENON_UNAUTHENTICATED if no
   * known key has signed them, anything else if the policy cannot be applied. */
  tenon_status (*check)(const char* policy, const char* path, tenon_err*);
  /* Version 2. The same of the file's contents, which the host has read and will open: what lies at
   * `path` by now may be another file. */
  tenon_status (*check_bytes)(const char* policy, const char* path, const char* bytes,
                              uint64_t size, tenon_err*);
} tenon_policy_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_POLICY_H_ */
