// SPDX-License-Identifier: Apache-2.0
// Failures in the host's words: every text begins with the kind of the device, and the driver's
// number travels along.
#pragma once

#include <tenon/tensor.hpp>

#include "runtime/driver.hpp"

namespace gpu {

using ::tenon::host;

// A failure of ours, or of the caller's.
[[gnu::format(printf, 3, 4)]] tenon_status fail(tenon_err* err, tenon_status code,
                                                const char* format, ...);

// The driver refused: "cuda: <text>: CUDA_ERROR_ILLEGAL_ADDRESS (700), <the driver's description>".
// The code follows from the number.
[[gnu::format(printf, 3, 4)]] tenon_status fail_driver(tenon_err* err, Error error,
                                                       const char* format, ...);

// Allocation of host memory threw.
tenon_status fail_host_memory(tenon_err* err);

// An error after which a device executes nothing more in this process.
bool is_sticky(Error error);

// The recording of a stream is invalid, or was used in a way that recordings do not allow.
bool is_capture_error(Error error);

[[gnu::format(printf, 2, 3)]] void log(int level, const char* format, ...);

// Return from the enclosing function unless the status is OK.
#define GPU_TRY(expression)                                                       \
  do {                                                                            \
    if (tenon_status status_ = (expression); status_ != TENON_OK) return status_; \
  } while (0)

}  // namespace gpu
