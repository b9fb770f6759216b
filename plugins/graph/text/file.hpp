// SPDX-License-Identifier: Apache-2.0
// Programs in files. A file is a safetensors file: the tensors of the leaves, "leaf.0" and so on,
// and the text form under "tenon.program" in the metadata. It may hold packed weights (text/packed.hpp).
#pragma once

#include <string>

#include "program/program.hpp"

namespace tenon::graph {

// Throws Error for a file that is not what it claims to be.
ProgramPtr load_program(const std::string& path);

// Writes a program with its leaves, and what executables have packed of them by now. The file appears
// whole or not at all. Throws Error.
void save_program(const Program& program, const std::string& path);

}  // namespace tenon::graph
