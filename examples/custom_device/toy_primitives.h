/* SPDX-License-Identifier: Apache-2.0
 *
 * What the template's primitives call by other names, or get as they need it here. */
#ifndef TOY_PRIMITIVES_H_
#define TOY_PRIMITIVES_H_

#include "toy_hardware.h"
#include "toy_plugin.h"

/* Failures of primitives have no number of the driver's. */
#define toy_fail(err, code, text) (toy_fail)((err), (code), 0, (text))

/* The table at the end of the file. */
#define toy_kernels toy_primitives
#define toy_kernel_count toy_primitive_count
#endif /* TOY_PRIMITIVES_H_ */
