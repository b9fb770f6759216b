/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "interpreter", version 1: operators from operator files, without a compiler
 * (docs/operator_files.md).
 *
 *   host->plugin_load("<prefix>/plugins/on_demand/libtenon_interpreter.so", err);
 *   const tenon_interpreter_api* interpreter = host->service_find("interpreter", 1);
 *
 * A program that uses the service loads the plugin; hosts do not load it by themselves. */
#ifndef TENON_SERVICES_INTERPRETER_H_
#define TENON_SERVICES_INTERPRETER_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_INTERPRETER_SERVICE "interpreter"
#define TENON_INTERPRETER_VERSION 1u

typedef struct tenon_interpreter_api {
  uint32_t struct_size;
  uint32_t version;
  /* Define the operators of files that share one namespace; they may call each other and every
   * operator that is loaded. All are defined or none. A file that was loaded before is replaced as
   * a whole: calls that run, and graphs that were recorded, go on with the operators they began
   * with.
   *
   *   paths    UTF-8, absolute or relative to the current folder
   *   defined  receives the qualified name of each operator that was defined ("acme::swiglu"), one
   *            call each; NULL: not reported
   *
   * TENON_INVALID_ARGUMENT: mistakes in the files, each as a line "file:line: text".
   * TENON_ALREADY_EXISTS: an operator of that name is defined elsewhere. Any thread,
   * but not from tenon_plugin.start, while the host is loading. */
  tenon_status (*load)(const char* const* paths, uint32_t npaths, tenon_sink_fn defined, void* user,
                       tenon_err*);
} tenon_interpreter_api;

#ifdef __cplusplus
}
#endif
#endif /* TENON_SERVICES_INTERPRETER_H_ */
