// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/program.hpp"

namespace tenon::graph {

// A copy with these names of inputs and results; NULL in a list: no name, NULL for a list: as before. Throws Error.
ProgramPtr with_names(const Program& program, const char* const* inputs,
                      const char* const* results);

}  // namespace tenon::graph
