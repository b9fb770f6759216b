/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this plugin share. */
#ifndef TOY_PLUGIN_H_
#define TOY_PLUGIN_H_

#include <tenon/abi.h>

extern const tenon_host* toy_host; /* every service of the host; set by tenon_plugin_query */

/* Report a failure with the driver's own number (0: none) and return its code. */
tenon_status toy_fail(tenon_err*, tenon_status code, int driver_error, const char* text);

/* The kernel table (toy_kernels.c); the primitives in it are the template's. */
const tenon_kernel_def* toy_kernels(uint32_t* count);
extern const tenon_kernel_def toy_primitives[];
extern const uint32_t toy_primitive_count;

#endif /* TOY_PLUGIN_H_ */
