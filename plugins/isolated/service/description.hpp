// SPDX-License-Identifier: Apache-2.0
// What the isolated process says about the plugin that it loaded.
#pragma once

#include <string>
#include <vector>

#include "wire/message.hpp"

namespace tenon::isolated {

struct DescribedKernel {
  KernelRow row;
  std::string op;  // "tenon::add"
};

struct Description {
  std::string name, version, vendor, kind;
  std::vector<tenon_device_info> devices;
  std::vector<DescribedKernel> kernels;
};

// False: it is malformed. Nothing else of it is trusted; the host checks the
// table made of it as it checks any other.
bool read_description(Reader message, Description* out);

}  // namespace tenon::isolated
