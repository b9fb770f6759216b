// SPDX-License-Identifier: Apache-2.0
// The device part of a plugin's table.
#include <algorithm>
#include <cstddef>

#include "kernel_core/plugin/guarded.hpp"
#include "kernel_core/plugin/sized_copy.hpp"
#include "kernel_core/plugin/tables.hpp"
#include "kernel_core/runtime/device_check.hpp"

namespace tenon::core {
namespace {

// Brings one optional group into the host's layout and points the device's copy at it.
template <class Table>
Refusal copy_group(const Manifest& manifest, const Tables& tables, const DeviceGroup& group,
                   Table& into, const Table*& theirs) {
  if (!theirs) return accepted();
  std::string name = std::string("the ") + group.name + " group";
  // A group is whole: what it had in the epoch's first revision is mandatory.
  if (!is_plausible_size(theirs->struct_size, sizeof(Table)))
    return refuse_table(
        manifest,
        "struct_size of " + name + ": " + describe_size(theirs->struct_size, sizeof(Table)),
        std::string("write sizeof(tenon_") + group.name + "_api)");
  if (theirs->reserved != 0 && !tables.is_newer())
    return refuse_table(manifest, "reserved is not 0 in " + name);
  copy_sized(into, theirs, theirs->struct_size);
  into.struct_size = sizeof(Table);
  theirs = &into;
  return accepted();
}

}  // namespace

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

#define TENON_COPY_GROUP(number, NAME, member, type)                                       \
  if (Refusal refusal = copy_group(manifest, tables, kDeviceGroups[number], tables.member, \
                                   tables.device.member))                                  \
    return refusal;
  TENON_DEVICE_GROUPS(TENON_COPY_GROUP)
#undef TENON_COPY_GROUP
  tables.device.struct_size = sizeof(tenon_device_api);  // the copy is in the host's layout

  tenon_err err;
  if (check_device_api(&tables.device, &err) != TENON_OK) return refuse_table(manifest, err.text);
  std::string kind = tables.device.kind;
  if (!manifest.is_attached &&
      std::find(manifest.devices.begin(), manifest.devices.end(), kind) == manifest.devices.end())
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
