// SPDX-License-Identifier: Apache-2.0
// The service "register_functions" (tenon/services/register_functions.h).
#pragma once

#include "math/register_functions.hpp"

#include <tenon/abi.h>

#include <vector>

namespace tenon::cpu {

// Those of the instruction set that was chosen, and the kernels that compute the same.
void set_register_functions(const RegisterFunctions* functions,
                            const std::vector<tenon_kernel_def>& kernels);

// tenon_plugin.start
tenon_status offer_register_functions(const tenon_host* host, tenon_err* err);

}  // namespace tenon::cpu
