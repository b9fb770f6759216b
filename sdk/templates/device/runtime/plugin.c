/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plugin is, and the one function that it exports. */
#include <string.h>

#include "acme.h"

const tenon_host* acme_host;

tenon_status acme_fail(tenon_err* err, tenon_status code, const char* text) {
  acme_host->fail(err, code, 0 /* your driver's own number */, text, strlen(text));
  return code;
}

/* Before unload. There are no threads to stop; that this function exists says that the plugin may go. */
static tenon_status stop(tenon_err* err) {
  (void)err;
  return TENON_OK;
}

static tenon_plugin plugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "acme",
    .version = ACME_VERSION,
    .vendor = "Acme",
    .device = &acme_device_api,
    .op_size = sizeof(tenon_op_def),
    .kernel_size = sizeof(tenon_kernel_def),
    .stop = stop,
};

TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t host_min, uint32_t host_max,
                                                    const tenon_host* host, tenon_err* err) {
  acme_host = host;
  if (host_min > TENON_ABI_EPOCH || host_max < TENON_ABI_EPOCH) {
    acme_fail(err, TENON_UNSUPPORTED,
              "acme: built for another ABI epoch; update this plugin or Tenon");
    return NULL;
  }
#ifdef ACME_KERNELS
  plugin.kernels = acme_kernels;
  plugin.nkernels = acme_kernel_count;
#endif
  return &plugin;
}
