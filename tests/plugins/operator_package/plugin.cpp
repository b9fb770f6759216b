// SPDX-License-Identifier: Apache-2.0
// A package of operators: the table is generated from acme.yaml.
#include <tenon/plugin.hpp>

namespace acme::operators {
extern const tenon_op_def kOperators[];
extern const uint32_t kOperatorCount;
}  // namespace acme::operators

namespace {

const tenon_plugin kPlugin = {.struct_size = sizeof(tenon_plugin),
                              .revision = TENON_ABI_REVISION,
                              .name = "acme_operators",
                              .version = "1.0.0",
                              .vendor = "Acme",
                              .ops = acme::operators::kOperators,
                              .nops = acme::operators::kOperatorCount,
                              .op_size = sizeof(tenon_op_def)};

}  // namespace

TENON_PLUGIN(kPlugin)
