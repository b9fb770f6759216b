// SPDX-License-Identifier: Apache-2.0
// Calls that a device's operators had the host compute. The host counts them for the whole process.
#pragma once

#include <tenon/abi.h>

#include <cstdint>
#include <map>
#include <string>

#include "model.hpp"

namespace tenon::predictor {

using HostCalls = std::map<std::string, uint64_t>;  // by operator

// So far, for devices of this one's kind.
HostCalls host_calls(tenon_device_id device);

// Throws Error that lists the operators of which there are more calls than before: steps whose kernel declined its
// arguments, and parts of others. Calls of other threads count as well, so that a check may fail and never passes
// where the program falls back.
void check_no_more(const HostCalls& before, const HostCalls& after, const Model& model);

}  // namespace tenon::predictor
