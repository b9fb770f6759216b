// SPDX-License-Identifier: Apache-2.0
// A plugin without a fault, in parts that a fault can be put into.
#pragma once

#include <tenon/abi.h>

struct Parts {
  tenon_plugin plugin;
  tenon_device_api device;
  tenon_async_api async;
  tenon_op_def op;
  tenon_param_def param;
  tenon_kernel_def kernel;
};

extern const tenon_host* host;

// A device "faulty", an operator "faulty::twice" with one kernel, a service "faulty".
void make_sound(Parts& parts);

uint64_t schema_hash(const char* schema);

// Applies the named fault; false if there is no such fault.
bool make_faulty(Parts& parts, const char* fault);
