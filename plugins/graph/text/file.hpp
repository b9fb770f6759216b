// SPDX-License-Identifier: Apache-2.0
// Programs in files. A file is a safetensors file: the tensors of the leaves, "leaf.0" and so on, and
// the text form under "tenon.program" in the metadata.
#pragma once

#include <string>

#include "program/program.hpp"

namespace tenon::graph {

// Throws Error for a file that is not what it claims to be.
ProgramPtr load_program(const std::string& path);

}  // namespace tenon::graph
