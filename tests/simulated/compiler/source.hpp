// SPDX-License-Identifier: Apache-2.0
// What the host's compiler cannot read in preprocessed device code: finds the kernels, and rewrites
// the declarations of dynamic shared memory and, where wanted, inline assembly.
#pragma once

#include <string>
#include <vector>

namespace simulated {

struct DeviceSource {
  std::string text;
  std::vector<std::string> kernels;  // not templates; those come from name expressions
  bool has_shared_memory = false;
  bool has_shared_memory_in_templates = false;
};

// `runs_ptx`: inline assembly becomes calls of the functions in language_ptx.hpp.
DeviceSource read_device_source(const std::string& preprocessed, bool runs_ptx = false);

// What comes before the text.
std::string shared_section(const DeviceSource& source);

// The table of kernels, which follows the text. `expressions` name instances of templates.
std::string kernel_table(const DeviceSource& source, const std::vector<std::string>& expressions,
                         const std::string& architecture);

}  // namespace simulated
