// SPDX-License-Identifier: Apache-2.0
// Failures in the host's words: every text begins with "opencl: ", the driver's number travels
// along.
#pragma once

#include "driver.hpp"

#include <tenon/tensor.hpp>

namespace opencl {

using ::tenon::host;

// A failure of ours, or of the caller's.
[[gnu::format(printf, 3, 4)]] tenon_status fail(tenon_err* err, tenon_status code,
                                                const char* format, ...);

// The driver said no: "opencl: <text>: CL_OUT_OF_RESOURCES (-5)". The code follows from the number.
[[gnu::format(printf, 3, 4)]] tenon_status fail_driver(tenon_err* err, cl_int error,
                                                       const char* format, ...);

// Allocation of host memory threw.
tenon_status fail_host_memory(tenon_err* err);

// "CL_OUT_OF_RESOURCES"; "unknown error" for numbers of a vendor's own.
const char* error_name(cl_int error);

[[gnu::format(printf, 1, 2)]] void log_info(const char* format, ...);

}  // namespace opencl
