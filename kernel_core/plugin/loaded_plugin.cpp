// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/loaded_plugin.hpp"

#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/plugin/guarded.hpp"
#include "kernel_core/plugin/services.hpp"
#include "kernel_core/runtime/device.hpp"
#include "kernel_core/runtime/tensor_extension.hpp"

namespace tenon::core {
namespace {

std::string call_name(const LoadedPlugin& plugin, const char* function) {
  return plugin.manifest.name + " > " + function;
}

}  // namespace

Refusal open_and_query(LoadedPlugin& plugin) {
  if (plugin.attached) {
    Refusal refusal = check_tables(plugin.attached, plugin.manifest, plugin.tables);
    if (!refusal && plugin.tables.has_device())
      plugin.manifest.devices = {plugin.tables.device.kind};
    return refusal;
  }
  Library& library = plugin.library;
  if (std::string problem; !library.open(plugin.file.path, std::move(plugin.copy), problem))
    return explain_open_failure(plugin.file.path, problem);
  if (Refusal refusal = library.check_entry_point(plugin.file.path)) return refusal;
  tenon_err err;
  const tenon_plugin* returned = nullptr;
  std::string what = call_name(plugin, "tenon_plugin_query");
  tenon_plugin_query_fn query = library.query_function();
  tenon_status status = guarded(what.c_str(), &err, [&] {
    returned = query(TENON_ABI_EPOCH, TENON_ABI_EPOCH, tenon_host_get(TENON_ABI_EPOCH), &err);
    return TENON_OK;
  });
  if (status == TENON_OK && returned) return check_tables(returned, plugin.manifest, plugin.tables);
  if (err.text.empty()) err.text = what + " returned NULL and gave no reason";
  return {Stage::kQuery, Reason::kQueryFailed,
          "plugin " + plugin.origin() + " refused: " + err.text, ""};
}

Refusal publish(LoadedPlugin& plugin) {
  tenon_err err;
  // TENON_ALREADY_EXISTS: another plugin has it. Any other status is a fault of this plugin.
  auto refuse = [&](tenon_status status, Reason conflict) -> Refusal {
    Reason reason = status == TENON_ALREADY_EXISTS ? conflict : Reason::kBadTable;
    return {Stage::kPublish, reason, "plugin " + plugin.origin() + ": " + err.text, ""};
  };
  PluginTable table = plugin.tables.registry_view();
  table.origin = plugin.origin();
  table.namespaces = plugin.manifest.namespaces;
  table.needs_consent = plugin.manifest.needs_consent;
  table.is_optional = plugin.manifest.is_optional;
  tenon_status status = registry_add(table, &plugin, &err);
  if (status != TENON_OK) return refuse(status, Reason::kOpConflict);
  if (plugin.tables.has_device()) {
    status = add_device_kind(&plugin.tables.device, &plugin, &plugin.device_kind, &err,
                             plugin.origin().c_str());
    if (status != TENON_OK) {
      registry_remove(&plugin);
      return refuse(status, Reason::kNameTaken);
    }
  }
  plugin.is_published = true;
  return accepted();
}

Refusal start(LoadedPlugin& plugin) {
  if (!plugin.tables.plugin.start) return accepted();
  tenon_err err;
  StartScope scope(&plugin, "plugin " + plugin.origin());
  tenon_status status = guarded(call_name(plugin, "start").c_str(), &err, [&] {
    return plugin.tables.plugin.start(tenon_host_get(TENON_ABI_EPOCH), &err);
  });
  if (status == TENON_OK) return accepted();
  remove_services(&plugin);
  return {Stage::kStart, Reason::kStartFailed,
          "plugin " + plugin.origin() + " did not start: " + err.text, ""};
}

Refusal check_leases(const LoadedPlugin& plugin) {
  std::string leases;
  for (const std::string& name : services_handed_out(&plugin))
    leases += ", service '" + name + "' is in use";
  const LayerSet layers = layer_table.registered.load(std::memory_order_acquire);
  for (int32_t i = 0; i < kMaxLayers; ++i)
    if (layers >> i & 1 && layer_table.owners[i] == &plugin)
      leases += std::string(", layer '") + layer_table.defs[i].name + "' is registered";
  for (const std::string& name : used_extension_slots(&plugin))
    leases += ", tensors have used extension slot '" + name + "'";
  if (leases.empty()) return accepted();
  return {Stage::kUnload, Reason::kInUse,
          "plugin " + plugin.manifest.name + " is in use: " + leases.substr(2),
          "services, layers and extension slots in use stay until the process ends"};
}

Refusal stop(LoadedPlugin& plugin) {
  auto refuse = [&](std::string text, std::string fix) -> Refusal {
    return {Stage::kUnload, Reason::kStopFailed, "plugin " + plugin.manifest.name + std::move(text),
            std::move(fix)};
  };
  if (!plugin.tables.plugin.stop)
    return refuse(" has no stop function: it stays until the process ends", "");
  tenon_err err;
  tenon_status status = guarded(call_name(plugin, "stop").c_str(), &err,
                                [&] { return plugin.tables.plugin.stop(&err); });
  if (status != TENON_OK)
    return refuse(" did not stop: " + err.text, "release what it holds and try again");
  remove_services(&plugin);  // start() registers them anew if unloading ends here
  return accepted();
}

Refusal unpublish(LoadedPlugin& plugin) {
  if (!plugin.is_published) return accepted();
  tenon_err err;
  tenon_status status =
      plugin.tables.has_device() ? remove_device_kind(plugin.device_kind, &err) : TENON_OK;
  if (status == TENON_FAILED_PRECONDITION)
    return {Stage::kUnload, Reason::kInUse,
            "plugin " + plugin.manifest.name + " is in use: " + err.text, ""};
  if (status != TENON_OK)
    return {Stage::kUnload, Reason::kStopFailed,
            "plugin " + plugin.manifest.name + " did not stop: " + err.text,
            "let its work finish and try again"};
  registry_remove(&plugin);
  plugin.is_published = false;
  return accepted();
}

}  // namespace tenon::core
