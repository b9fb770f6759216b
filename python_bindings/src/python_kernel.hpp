// SPDX-License-Identifier: Apache-2.0
// A kernel that is a Python function, for any operator: a plugin table of one kernel, made at run
// time.
#pragma once

#include <string>

#include "operator_definition.hpp"

namespace tenon::python {

struct KernelDefinition {
  KernelDefinition(const Schema& parsed, Callback callback)
      : schema(parsed), function(std::move(callback)) {}

  const Schema& schema;
  Callback function;
  std::string plugin_name, device, origin;
  uint64_t dtype_mask = 0;
  int32_t score = 0;
  bool is_deterministic = true;
  bool is_strided =
      false;  // takes tensors of any strides; otherwise they are made contiguous first
  tenon_plugin table = {};
  tenon_kernel_def def = {};
  int running = 0;
  int slot = -1;  // -1: not attached
};

// False: Python error set.
bool attach(KernelDefinition& kernel);
bool detach(KernelDefinition& kernel);

}  // namespace tenon::python
