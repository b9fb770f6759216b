// SPDX-License-Identifier: Apache-2.0
// What InitPlugin filled, after it was found to be what it should be.
#pragma once

#include <paddle/phi/backends/device_ext.h>

#include <string>

#include "core/host.hpp"

namespace tenon::paddle {

struct FilledInterface {
  C_DeviceInterface slots;  // absent ones are NULL
  std::string device_type;
  std::string sub_device_type;
  std::string version;
};

using InitPluginFn = void (*)(CustomRuntimeParams*);

// Call InitPlugin and check all that can be checked without a device. Throws the reason of a
// refusal.
//
// The interface is not zeroed before the call but filled with a value that no plugin writes, and
// lies in front of more of it. What InitPlugin cleared and set is then visible, and with it the
// layout that it was compiled with: the version that plugins report has not changed with the
// layout.
FilledInterface run_init_plugin(InitPluginFn init);

}  // namespace tenon::paddle
