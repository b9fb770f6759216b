// SPDX-License-Identifier: Apache-2.0
// Kernels for the device of another plugin, and for the operator of a third.
#include <tenon/plugin.hpp>

#include "parts.hpp"

const tenon_host* host;

namespace {

tenon_plugin& table() {
  static Parts parts;
  make_sound(parts);
  parts.kernel.op = "package::twice";
  parts.kernel.device = "null";
  parts.plugin.name = "extra_kernels";
  parts.plugin.device = nullptr;
  parts.plugin.nops = 0;
  parts.plugin.start = nullptr;
  return parts.plugin;
}

}  // namespace

TENON_PLUGIN(table())
