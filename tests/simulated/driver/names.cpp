// SPDX-License-Identifier: Apache-2.0
// The exported functions that both vendors have, under the names of one of them.
#include "../failures.hpp"
#include "device.hpp"
#include "functions.hpp"

#if SIMULATED_HIP
#define SIMULATED_NAME(cuda, hip) hip
#else
#define SIMULATED_NAME(cuda, hip) cuda
#endif
#define SIMULATED_TEXT(name) #name
#define SIMULATED_NAME_TEXT(cuda, hip) SIMULATED_HIP ? SIMULATED_TEXT(hip) : SIMULATED_TEXT(cuda)

#define SIMULATED_DEFINE(member, cuda, hip, parameters, arguments)         \
  SIMULATED_EXPORT simulated::Error SIMULATED_NAME(cuda, hip) parameters { \
    using namespace simulated;                                             \
    if (Error error = enter(SIMULATED_NAME_TEXT(cuda, hip))) return error; \
    return api::member arguments;                                          \
  }
using namespace simulated;
SIMULATED_FUNCTIONS(SIMULATED_DEFINE)

// The one function that may be called before it has been called.
SIMULATED_EXPORT Error SIMULATED_NAME(cuInit, hipInit)(unsigned) {
  if (Error error = count_call(SIMULATED_NAME_TEXT(cuInit, hipInit))) return error;
  TRY(init());
  return devices().empty() ? error::NO_DEVICE : error::SUCCESS;
}
