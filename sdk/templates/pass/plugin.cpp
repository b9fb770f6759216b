// SPDX-License-Identifier: Apache-2.0
// The plugin: it adds its pass when it is loaded, and removes it before it is unloaded.
#include <tenon/plugin.hpp>

#include "passes/fold_scales.hpp"

namespace acme {
namespace {

tenon_status start(const tenon_host*, tenon_err* err) {
  return tenon::add_graph_pass("fold_scales", fold_scales, err);
}

tenon_status stop(tenon_err* err) { return tenon::remove_graph_pass("fold_scales", err); }

constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "acme",
    .version = ACME_VERSION,
    .vendor = "Acme",
    .start = start,
    .stop = stop,
};

}  // namespace
}  // namespace acme

TENON_PLUGIN(acme::kPlugin)
