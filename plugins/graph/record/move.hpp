// SPDX-License-Identifier: Apache-2.0
// Programs on another device than they were recorded on.
#pragma once

#include "program/program.hpp"

namespace tenon::graph {

// The same steps with all values on `device`; leaves are copied there. Throws Error.
ProgramPtr move_program(const Program& program, tenon_device_id device);

}  // namespace tenon::graph
