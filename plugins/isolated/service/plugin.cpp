// SPDX-License-Identifier: Apache-2.0
// The whole plugin at a glance: one service.
#include <tenon/plugin.hpp>

#include "service/connection.hpp"
#include "service/proxy.hpp"

namespace tenon::isolated {
namespace {

constexpr tenon_isolated_api kService = {
    .struct_size = sizeof(tenon_isolated_api),
    .version = TENON_ISOLATED_VERSION,
    .load = load_isolated,
};

tenon_status start(const tenon_host*, tenon_err* err) {
  watch_forks();
  return host->service_register(TENON_ISOLATED_SERVICE, TENON_ISOLATED_VERSION, &kService, err);
}

// `stop` is absent: threads of ours watch processes, and a fork handler is registered for good.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "isolated",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::isolated

TENON_PLUGIN(tenon::isolated::kPlugin)
