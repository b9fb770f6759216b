/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "register_functions", version 1: what elementwise kernels of the host compute, as functions of registers.
 *
 * The plugin cpu offers it. A compiler that assembles a loop calls them from there, so that what passes between the
 * operators of the loop is in no memory. */
#ifndef TENON_SERVICES_REGISTER_FUNCTIONS_H_
#define TENON_SERVICES_REGISTER_FUNCTIONS_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_REGISTER_FUNCTIONS_SERVICE "register_functions"
#define TENON_REGISTER_FUNCTIONS_VERSION 1u

/* A function that takes vector registers of so many bytes, full of elements of one dtype, and returns one, all as the
 * platform's calling convention passes them (on x86-64 __m256 or __m512, __m256d or __m512d). Each element of the
 * result has the bits that the kernel gives for the same elements of the operands. It holds while the plugin is loaded. */
typedef struct tenon_register_function {
  const void* code;
  uint32_t bytes;    /* 32 or 64 */
  uint32_t operands; /* 1 or 2: the tensors with which the operator's parameters begin */
} tenon_register_function;

typedef struct tenon_register_functions_api {
  uint32_t struct_size;
  uint32_t version;
  /* 1: `*out` is the function of a kernel for tensors of `dtype` and these complete arguments. 0: there is none, and
   * `*out` is as it was. Any thread, several at once. */
  int32_t (*find)(const tenon_kernel_def* kernel, const tenon_value* args, uint32_t nargs,
                  int32_t dtype, tenon_register_function* out);
} tenon_register_functions_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_REGISTER_FUNCTIONS_H_ */
