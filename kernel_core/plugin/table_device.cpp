// SPDX-License-Identifier: Apache-2.0
// The device part of a plugin's table.
#include <algorithm>
#include <cstddef>

#include "kernel_core/plugin/guarded.hpp"
#include "kernel_core/plugin/sized_copy.hpp"
#include "kernel_core/plugin/tables.hpp"
#include "kernel_core/runtime/device_check.hpp"

namespace tenon::core {

Refusal check_device(const Manifest& manifest, Tables& tables) {
  const tenon_device_api* theirs = tables.plugin.device;
  if (!theirs) {
    if (manifest.devices.empty()) return accepted();
    return refuse_table(manifest,
                        "the note promises device " + manifest.devices[0] + ", but there is none",
                        "set tenon_plugin.device");
  }
  constexpr size_t kMandatory = offsetof(tenon_device_api, async);
  if (!is_plausible_size(theirs->struct_size, kMandatory))
    return refuse_table(
        manifest, "struct_size of the device: " + describe_size(theirs->struct_size, kMandatory),
        "write sizeof(tenon_device_api)");
  copy_sized(tables.device, theirs, theirs->struct_size);

  if (const tenon_async_api* async = tables.device.async) {
    if (!is_plausible_size(async->struct_size, sizeof(tenon_async_api)))
      return refuse_table(manifest,
                          "struct_size of the async group: " +
                              describe_size(async->struct_size, sizeof(tenon_async_api)),
                          "write sizeof(tenon_async_api)");
    copy_sized(tables.async, async, async->struct_size);
    if (tables.async.reserved != 0 && !tables.is_newer())
      return refuse_table(manifest, "reserved is not 0 in the async group");
    tables.device.async = &tables.async;
  }
  // The copies are in the host's layout now, and say so.
  tables.device.struct_size = sizeof(tenon_device_api);
  tables.async.struct_size = sizeof(tenon_async_api);

  tenon_err err;
  if (check_device_api(&tables.device, &err) != TENON_OK) return refuse_table(manifest, err.text);
  std::string kind = tables.device.kind;
  if (std::find(manifest.devices.begin(), manifest.devices.end(), kind) == manifest.devices.end())
    return refuse_table(manifest, "it provides device '" + kind + "', which the note does not list",
                        "tenon_add_plugin(... DEVICES " + kind + ")");

  std::vector<tenon_device_info> infos;
  tenon_status status =
      guarded("enumerate", &err, [&] { return enumerate_devices(&tables.device, &infos, &err); });
  if (status == TENON_OK) return accepted();
  // An answer that cannot be believed is a bug; a failure is a driver that is not there.
  if (status == TENON_INTERNAL || status == TENON_INVALID_ARGUMENT)
    return refuse_table(manifest, err.text);
  return {Stage::kNegotiate, Reason::kNoDevice,
          "plugin " + manifest.name + " finds no device: " + err.text,
          "check that the driver of " + kind + " is installed"};
}

}  // namespace tenon::core
