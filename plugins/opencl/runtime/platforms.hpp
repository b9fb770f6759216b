// SPDX-License-Identifier: Apache-2.0
// Which of the drivers' devices are ours, and in which order.
#pragma once

#include <string>
#include <vector>

#include "errors.hpp"

namespace opencl {

struct Found {
  cl_device_id device;
  bool is_processor;
  std::string place;  // "0:1": platform and device as clinfo counts them
};

// Every usable device of every platform; accelerators before processors, otherwise in the drivers'
// order. TENON_OPENCL_PLATFORM narrows it to one platform: its number, or a part of its name.
tenon_status find_devices(std::vector<Found>* out, tenon_err* err);

}  // namespace opencl
