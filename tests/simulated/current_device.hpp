// SPDX-License-Identifier: Apache-2.0
// What libraries of the simulator ask the driver's stand-in, under the names of either vendor.
#pragma once

#include <cstddef>

#if SIMULATED_HIP
extern "C" int hipGetDevice(int*);
#else
extern "C" int cuCtxGetDevice(int*);
#endif
extern "C" void* simulated_access(const void* memory, size_t bytes);
extern "C" int simulated_enqueue(void* stream, void (*call)(void*), void* user,
                                 void (*destroy)(void*));

namespace simulated {

inline int current_device() {  // -1: none
  int device = -1;
#if SIMULATED_HIP
  hipGetDevice(&device);
#else
  cuCtxGetDevice(&device);
#endif
  return device;
}

}  // namespace simulated
