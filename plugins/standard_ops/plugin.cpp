// SPDX-License-Identifier: Apache-2.0
// The standard operators: schemas, shape rules and decompositions. No kernels and no device: those
// come from device plugins.
#include <tenon/plugin.hpp>

namespace tenon::standard_ops {

// Generated from opdefs/.
extern const tenon_op_def kOperators[];
extern const uint32_t kOperatorCount;

namespace {

tenon_plugin plugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "standard_ops",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .ops = kOperators,
    .op_size = sizeof(tenon_op_def),
};

// The count is known only to the generated file, so the table is completed before it is handed out.
const tenon_plugin& completed() {
  plugin.nops = kOperatorCount;
  return plugin;
}

}  // namespace
}  // namespace tenon::standard_ops

TENON_PLUGIN(tenon::standard_ops::completed())
