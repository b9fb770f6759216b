// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/tables.hpp"

#include <cstddef>

#include "kernel_core/plugin/sized_copy.hpp"

namespace tenon::core {

PluginTable Tables::registry_view() const {
  return {.name = plugin.name,
          .device_kind = has_device() ? device.kind : "",
          .ops = ops,
          .kernels = kernels};
}

Refusal refuse_table(const Manifest& manifest, const std::string& what, std::string fix) {
  return {Stage::kNegotiate, Reason::kBadTable,
          "the table of plugin " + manifest.name + " is not sound: " + what, std::move(fix)};
}

Refusal check_array(const Manifest& manifest, const char* name, const void* array, uint32_t count,
                    uint32_t element_size, size_t mandatory) {
  if (count == 0) return accepted();
  std::string counted = std::to_string(count) + " " + name;
  if (!array) return refuse_table(manifest, counted + ", but their array is NULL");
  if (count > kMaxTableEntries) return refuse_table(manifest, counted + " are too many");
  if (!is_plausible_size(element_size, mandatory))
    return refuse_table(
        manifest,
        std::string("element size of ") + name + ": " + describe_size(element_size, mandatory),
        "write sizeof of the element's struct");
  return accepted();
}

bool accept_dtype_mask(const Tables& tables, uint64_t& mask) {
  constexpr uint64_t kKnown = (uint64_t{1} << TENON_DTYPE_COUNT) - 1;
  constexpr uint64_t kReserved = (uint64_t{1} << TENON_DTYPE_SLOTS) - 1;
  if (mask & ~(tables.is_newer() ? kReserved : kKnown)) return false;
  mask &= kKnown;
  return true;
}

Refusal check_tables(const tenon_plugin* returned, const Manifest& manifest, Tables& tables) {
  constexpr size_t kMandatory = offsetof(tenon_plugin, device);
  uint32_t size = returned->struct_size;
  if (!is_plausible_size(size, kMandatory))
    return refuse_table(manifest, "struct_size of tenon_plugin: " + describe_size(size, kMandatory),
                        "write sizeof(tenon_plugin)");
  copy_sized(tables.plugin, returned, size);
  const tenon_plugin& plugin = tables.plugin;
  if (plugin.features != 0 && !tables.is_newer())
    return refuse_table(manifest, "feature bits that its own revision does not define",
                        "write 0 to tenon_plugin.features");
  if (!plugin.name || !plugin.version || !plugin.vendor)
    return refuse_table(manifest, "name, version or vendor is NULL");
  if (plugin.name != manifest.name)
    return refuse_table(manifest,
                        "the note says '" + manifest.name + "' and the table '" + plugin.name + "'",
                        "give both the same name");
  if (Refusal refusal = check_device(manifest, tables)) return refusal;
  if (Refusal refusal = check_operators(manifest, tables)) return refusal;
  return check_kernels(manifest, tables);
}

}  // namespace tenon::core
