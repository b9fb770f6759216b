// SPDX-License-Identifier: Apache-2.0
// What the simulated XDNN knows of the simulated XRE.
#pragma once

#include <cstddef>

extern "C" {
// Where the bytes of the chip are; nullptr if [address, address + bytes) is not in one allocation.
__attribute__((visibility("default"))) void* simulated_xpu_translate(const void* address,
                                                                     size_t bytes);
// Work of the default stream. An error that it returns, of xpu/defs.h, appears at the next xpu_wait.
__attribute__((visibility("default"))) void simulated_xpu_queue(int (*work)(void*),
                                                                void (*drop)(void*), void* user);
__attribute__((visibility("default"))) int simulated_xpu_current_device();
}
