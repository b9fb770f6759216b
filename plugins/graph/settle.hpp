// SPDX-License-Identifier: Apache-2.0
// Two recordings of one function, compared: what differs came from something that is no tensor.
#pragma once

#include "program.hpp"

namespace tenon::graph {

// A copy, with a plan of its own.
ProgramPtr copy_program(const Program& program);

// `second`, with leaves as constants that the function made itself: the same data in new memory each
// time. Throws Error (TENON_FAILED_PRECONDITION) where the recordings differ.
ProgramPtr settle(const Program& first, const Program& second);

}  // namespace tenon::graph
