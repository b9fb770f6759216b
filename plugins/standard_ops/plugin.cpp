// SPDX-License-Identifier: Apache-2.0
// The standard operators: schemas, shape rules and decompositions. No kernels and no device: those
// come from device plugins.
#include <tenon/services/calls.h>
#include <tenon/plugin.hpp>

namespace tenon::standard_ops {

// Generated from opdefs/.
extern const tenon_op_def kOperators[];
extern const uint32_t kOperatorCount;

namespace {

// Creations of small tensors take less time than the call of a decomposition does, so the host makes
// these itself.
tenon_status start(const tenon_host*, tenon_err* err) {
  auto* calls = static_cast<const tenon_calls_api*>(
      host->service_find(TENON_CALLS_SERVICE, TENON_CALLS_VERSION));
  if (!calls) return TENON_OK;  // the host is older: the decompositions do the same
  if (tenon_status status = calls->declare_creation(host->op_find("tenon::empty"), TENON_DTYPE_F32,
                                                    TENON_CREATION_EMPTY, err))
    return status;
  return calls->declare_creation(host->op_find("tenon::zeros"), TENON_DTYPE_F32,
                                 TENON_CREATION_ZEROS, err);
}

tenon_plugin plugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "standard_ops",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .ops = kOperators,
    .op_size = sizeof(tenon_op_def),
    .start = start,
};

// The count is known only to the generated file, so the table is completed before it is handed out.
const tenon_plugin& completed() {
  plugin.nops = kOperatorCount;
  return plugin;
}

}  // namespace
}  // namespace tenon::standard_ops

TENON_PLUGIN(tenon::standard_ops::completed())
