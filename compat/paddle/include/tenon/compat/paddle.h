/* SPDX-License-Identifier: Apache-2.0
 *
 * tenon/compat/paddle.h - what libpaddle.so offers to programs: device plugins written for
 * PaddlePaddle. The Python package tenon.compat.paddle calls these. C11 and C++20. */
#ifndef TENON_COMPAT_PADDLE_H_
#define TENON_COMPAT_PADDLE_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Load a library with InitPlugin and attach it to the host of this process as a device plugin. The
 * rules for plugins' files hold for it: owner, mode and TENON_PLUGIN_POLICY. Its code runs: static
 * initialisers, InitPlugin, initialize. It stays mapped until the process ends,
 * loaded or not. Loading the same file again is no error. Failures are texts to `err`. Any thread;
 * one load at a time. */
TENON_EXPORT tenon_status tenon_paddle_load_device(const char* path, tenon_err* err);

/* As above for callers without an error sink: the text of a failure goes to `sink`. */
TENON_EXPORT tenon_status tenon_paddle_load_device_text(const char* path, tenon_sink_fn sink,
                                                        void* user);

/* As above for a library that was found in a folder that is loaded as a whole, and not named by the
 * program: TENON_PLUGIN_TRUST=any does not apply. */
TENON_EXPORT tenon_status tenon_paddle_load_found_device_text(const char* path, tenon_sink_fn sink,
                                                              void* user);

/* JSON: a list of the plugins loaded so, and what became of each kernel name that they registered:
 *   [{"device", "path", "version", "registrations", "streams", "kernels":
 *     [{"name", "state": "mapped" | "partly" | "refused" | "unused", "operator", "dtypes",
 * "text"}]}] */
TENON_EXPORT void tenon_paddle_describe(tenon_sink_fn sink, void* user);

/* JSON: the kernels that Tenon can call: [{"kernel", "operator", "signature", "dtypes"}]. */
TENON_EXPORT void tenon_paddle_describe_kernel_table(tenon_sink_fn sink, void* user);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_COMPAT_PADDLE_H_ */
