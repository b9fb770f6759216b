// SPDX-License-Identifier: Apache-2.0
// The text of a Kernel C program, for the plugins that hand it to a compiler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpu_common {

// Begins the lines of a program, so that the compiler's messages name the program and its own lines
// instead of the prelude's.
std::string line_directive(const std::string& program_name);

struct KernelSignature {
  std::string name;
  unsigned parameters;  // a buffer counts as one
};

// The kernels whose `TK_KERNEL void name(...)` stands in the text. Those whose names are made by
// macros are not found.
std::vector<KernelSignature> find_kernels(std::string_view source);

}  // namespace gpu_common
