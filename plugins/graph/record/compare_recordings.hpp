// SPDX-License-Identifier: Apache-2.0
// Two recordings of one function, compared: what differs came from something that is no tensor.
#pragma once

#include "program/program.hpp"

namespace tenon::graph {

bool is_same_memory(const tenon_tensor& a, const tenon_tensor& b);
// Of tensors of one type.
bool has_same_bytes(const Tensor& a, const Tensor& b);

// A copy, with a plan of its own.
ProgramPtr copy_program(const Program& program);

// `second`, with leaves as constants that the function made itself: the same data in new memory each
// time. Throws Error (TENON_FAILED_PRECONDITION) where the recordings differ.
ProgramPtr compare_recordings(const Program& first, const Program& second);

}  // namespace tenon::graph
