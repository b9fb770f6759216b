// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/loader.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>

#include "kernel_core/plugin/host_location.hpp"
#include "kernel_core/runtime/log.hpp"

namespace tenon::core {
namespace {

Refusal refuse_name(std::string text, std::string fix) {
  return {Stage::kNote, Reason::kNameTaken, std::move(text), std::move(fix)};
}

}  // namespace

Loader& Loader::instance() {
  static Loader& loader =
      *new Loader;  // lives to the end: no plugin code runs from static destructors
  return loader;
}

Refusal Loader::load(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (Refusal refusal = load_recorded(path, explicit_path_trust())) return refusal;
  load_kernels_for_loaded_devices();
  return accepted();
}

Refusal Loader::load_recorded(const std::string& path, Trust trust) {
  Attempt attempt{.path = path};
  attempt.outcome = load_file(path, trust, attempt);
  return record(std::move(attempt));
}

Refusal Loader::record(Attempt attempt) {
  // One that was accepted has passed all stages; unloading says so itself.
  if (!attempt.outcome && attempt.outcome.stage == Stage::kTrust)
    attempt.outcome.stage = Stage::kStart;
  auto known = std::find_if(attempts_.begin(), attempts_.end(), [&](const Attempt& other) {
    return other.path == attempt.path && other.outcome.stage == attempt.outcome.stage &&
           other.outcome.reason == attempt.outcome.reason;
  });
  if (known != attempts_.end()) {
    attempt.count += known->count;
    attempts_.erase(known);
  }
  attempts_.push_back(attempt);
  return attempt.outcome;
}

Refusal Loader::attach(const tenon_plugin* table, const std::string& origin) {
  std::lock_guard lock(mutex_);
  Attempt attempt{.path = origin};
  attempt.outcome = [&]() -> Refusal {
    if (!table || table->struct_size < offsetof(tenon_plugin, device) || !table->name ||
        !is_plugin_name(table->name) || !table->version)
      return {Stage::kNegotiate, Reason::kBadTable,
              origin + ": expected a table with a name like [a-z][a-z0-9_]* and a version",
              "fill tenon_plugin and write its size to struct_size"};
    auto plugin = std::make_unique<LoadedPlugin>();
    plugin->file.path = origin;
    plugin->attached = table;
    plugin->manifest.name = attempt.name = table->name;
    plugin->manifest.version = attempt.version = table->version;
    plugin->manifest.epoch_min = plugin->manifest.epoch_max = TENON_ABI_EPOCH;
    plugin->manifest.is_attached = true;
    if (Refusal refusal = check_name(plugin->file, plugin->manifest)) return refusal;
    return load_plugin(std::move(plugin));
  }();
  if (Refusal refusal = record(std::move(attempt))) return refusal;
  load_kernels_for_loaded_devices();
  return accepted();
}

// The pipeline: everything that can be asked without running plugin code comes first.
Refusal Loader::load_file(const std::string& path, Trust trust, Attempt& attempt) {
  auto plugin = std::make_unique<LoadedPlugin>();
  FileIdentity& file = plugin->file;
  if (Refusal refusal = identify(path, file)) return refusal;
  attempt.path = file.path;
  auto is_this_file = [&](const FileIdentity& other) { return other.same_file(file); };
  for (const auto& loaded : plugins_)
    if (!loaded->attached && is_this_file(loaded->file)) {
      attempt.name = loaded->manifest.name;
      attempt.version = loaded->manifest.version;
      return accepted();
    }
  if (std::any_of(in_progress_.begin(), in_progress_.end(), [&](const LoadedPlugin* other) {
        return !other->attached && is_this_file(other->file);
      }))
    return {Stage::kStart, Reason::kStartFailed,
            file.path + " asks for itself while it is being loaded", ""};

  if (Refusal refusal = check_trust(file, trust)) return refusal;
  if (Refusal refusal = check_policy(file, plugin->copy)) return refusal;
  if (Refusal refusal = read_note(file.path, plugin->manifest, plugin->copy.descriptor()))
    return refusal;
  attempt.name = plugin->manifest.name;
  attempt.version = plugin->manifest.version;
  if (Refusal refusal = check_note(file.path, plugin->manifest)) return refusal;
  if (Refusal refusal = check_name(file, plugin->manifest)) return refusal;
  return load_plugin(std::move(plugin));
}

Refusal Loader::check_name(const FileIdentity& file, const Manifest& manifest) const {
  if (is_disabled(manifest.name))
    return {Stage::kNote, Reason::kDisabled, "plugin " + manifest.name + " is disabled",
            "take it out of TENON_PLUGINS_DISABLE"};
  const LoadedPlugin* other = find_loaded(manifest.name);
  for (const LoadedPlugin* starting : in_progress_)
    if (starting->manifest.name == manifest.name) other = starting;
  if (other)
    return refuse_name("plugin name '" + manifest.name + "' of version " + manifest.version + " (" +
                           file.path + ") is taken by " + other->origin(),
                       "unload that one first, or rename one of the two");
  for (const Resident& resident : residents_)
    if (resident.name == manifest.name && !resident.file.same_file(file))
      return refuse_name(
          "another build of plugin '" + manifest.name + "' is still mapped: " + resident.file.path,
          "restart the process to load " + file.path);
  return accepted();
}

// Opens, publishes and starts the plugin. This is the first step that runs code of the plugin. If
// it refuses, nothing of the plugin stays.
Refusal Loader::load_plugin(std::unique_ptr<LoadedPlugin> plugin) {
  Manifest& manifest = plugin->manifest;
  manifest.may_define_tenon = may_define_tenon(plugin->file);
  bool defines_tenon = manifest.may_define_tenon && overlaps(manifest.namespaces, {"tenon"});
  manifest.needs_consent =
      !manifest.is_attached && !is_in_own_folder(plugin->file.path) && !defines_tenon;
  in_progress_.push_back(plugin.get());
  Refusal refusal = open_companions(plugin->file.path, plugin->copy, plugin->companions);
  if (!refusal) refusal = open_and_query(*plugin);
  if (!refusal) refusal = publish(*plugin);
  if (!refusal && (refusal = start(*plugin))) roll_back(std::move(plugin), refusal);
  in_progress_.pop_back();
  if (refusal) return refusal;
  log(LogLevel::kDebug, "loaded plugin %s", plugin->origin().c_str());
  if (uint32_t held_back = report_kernels(plugin.get()).held_back)
    log(LogLevel::kWarning,
        "plugin %s brings %u kernel(s) for operators and devices of others; held back: needs "
        "consent; "
        "tenon.plugins.allow_overrides('%s') or TENON_OVERRIDES=%s",
        plugin->origin().c_str(), held_back, manifest.name.c_str(), manifest.name.c_str());
  std::erase_if(residents_,
                [&](const Resident& resident) { return resident.name == plugin->manifest.name; });
  plugins_.push_back(std::move(plugin));
  return accepted();
}

// Undoes a failed start. What start() did before it failed may still refer to the plugin, which
// then must stay mapped.
void Loader::roll_back(std::unique_ptr<LoadedPlugin> plugin, Refusal& refusal) {
  Refusal held = unpublish(*plugin);
  if (!held) held = check_leases(*plugin);
  if (!held) held = check_attached(*plugin);
  if (!held) return;
  refusal.text += " (it stays mapped: " + held.text + ")";
  stranded_.push_back(std::move(plugin));
}

// An attached plugin is valid only as long as the library that contains its code is mapped.
Refusal Loader::check_attached(const LoadedPlugin& plugin) const {
  for (const auto& other : plugins_) {
    Dl_info info{};
    // A table may lie on the heap; a device's functions do not.
    auto open = reinterpret_cast<const void*>(other->tables.device.open);
    if (other->attached && !plugin.attached && ::dladdr(open ? open : other->attached, &info) &&
        info.dli_fname == plugin.file.path)
      return {Stage::kUnload, Reason::kInUse,
              "plugin " + plugin.manifest.name + " is in use: it has attached '" +
                  other->manifest.name + "'",
              "unload that one first"};
  }
  return accepted();
}

Refusal Loader::consent(const std::string& plugin, bool allowed) {
  Manifest manifest{.name = plugin};
  if (plugin.find('/') != plugin.npos)
    if (Refusal refusal = read_note(plugin, manifest)) return refusal;
  if (manifest.name != "*" && !is_plugin_name(manifest.name))
    return {Stage::kNote, Reason::kNotFound,
            "expected the name of a plugin, a path to its library, or *; got '" + plugin + "'", ""};
  allow_overrides(manifest.name, allowed);
  return accepted();
}

LoadedPlugin* Loader::find_loaded(const std::string& name) const {
  for (const auto& plugin : plugins_)
    if (plugin->manifest.name == name) return plugin.get();
  return nullptr;
}

Refusal Loader::unload(const std::string& name) {
  std::lock_guard lock(mutex_);
  LoadedPlugin* plugin = find_loaded(name);
  if (!plugin)
    return {Stage::kUnload, Reason::kNotFound, "no plugin named '" + name + "' is loaded", ""};
  if (leaving_)
    return {Stage::kUnload, Reason::kInUse,
            leaving_->origin() + " is being unloaded: one at a time", ""};
  Attempt attempt{.path = plugin->file.path, .name = name, .version = plugin->manifest.version};
  leaving_ = plugin;
  attempt.outcome = unload_plugin(*plugin);
  leaving_ = nullptr;
  attempt.outcome.stage = Stage::kUnload;
  if (attempt.outcome) return record(std::move(attempt));

  FileIdentity file = plugin->file;
  const std::string opened_as = plugin->library.opened_as();
  std::erase_if(plugins_, [&](const auto& other) { return other.get() == plugin; });
  std::erase_if(residents_, [&](const Resident& resident) { return resident.name == name; });
  if (file.inode != 0 && Library::is_mapped(opened_as)) {
    attempt.outcome.text = "RESIDENT: the system keeps the library mapped until the process ends";
    residents_.push_back({name, file});
  }
  for (Candidate& candidate : candidates_)
    if (candidate.file.same_file(file)) candidate.was_tried = false;
  (void)record(std::move(attempt));
  return accepted();
}

// Does everything but unmap the plugin. If it refuses, the plugin stays loaded as before.
Refusal Loader::unload_plugin(LoadedPlugin& plugin) {
  if (Refusal refusal = check_leases(plugin)) return refusal;
  if (Refusal refusal = check_attached(plugin)) return refusal;
  if (Refusal refusal = stop(plugin)) return refusal;
  // Plugins with kernels in source form keep compiled programs on every device that compiles. They
  // are stopped, which releases these programs, and started again.
  std::vector<LoadedPlugin*> borrowers;
  for (size_t i = 0; i < plugins_.size(); ++i) {  // by index: a plugin that stops may load another
    LoadedPlugin* other = plugins_[i].get();
    const auto& kinds = other->manifest.kernels_for;
    bool may_borrow = plugin.tables.device.compile &&
                      std::find(kinds.begin(), kinds.end(), TENON_DEVICE_COMPILED) != kinds.end();
    if (may_borrow && other != &plugin && !stop(*other)) borrowers.push_back(other);
  }
  Refusal refusal = unpublish(plugin);
  for (LoadedPlugin* other : borrowers) (void)start(*other);
  if (!refusal) return accepted();
  if (Refusal again = start(plugin)) refusal.text += "; and then " + again.text;
  return refusal;
}

}  // namespace tenon::core
