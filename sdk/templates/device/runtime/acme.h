/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this plugin share. */
#ifndef ACME_H_
#define ACME_H_

#include <tenon/abi.h>

/* The host's services; valid from tenon_plugin_query on. */
extern const tenon_host* acme_host;

/* Report a failure: returns `code`, so that a call can end with it. */
tenon_status acme_fail(tenon_err* err, tenon_status code, const char* text);

/* An open device. The host hands it back and never looks inside: keep your driver's handle here. */
struct tenon_device_s {
  uint32_t index;
};

extern const tenon_device_api acme_device_api; /* runtime/device.c */

/* runtime/memory.c */
tenon_status acme_alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                        tenon_err* err);
void acme_free(tenon_device device, void* memory, uint64_t bytes, tenon_stream stream);
tenon_status acme_copy(tenon_device device, const tenon_copy_request* request, tenon_err* err);
tenon_status acme_fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                       const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                       tenon_err* err);

/* kernels/primitives.c, built with ACME_KERNELS */
extern const tenon_kernel_def acme_kernels[];
extern const uint32_t acme_kernel_count;

#endif
