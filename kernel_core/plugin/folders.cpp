// SPDX-License-Identifier: Apache-2.0
// Plugins in folders: found by their notes, loaded when they are wanted.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "kernel_core/dispatch/candidates.hpp"
#include "kernel_core/plugin/foreign_library.hpp"
#include "kernel_core/plugin/host_location.hpp"
#include "kernel_core/plugin/loader.hpp"
#include "kernel_core/runtime/log.hpp"
#include "kernel_core/runtime/thread_pool.hpp"

namespace tenon::core {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSystemFolder = "/usr/lib/tenon/plugins";

// secure_getenv: a set-user-id program takes no advice from its caller's environment.
std::vector<std::string> list_from_environment(const char* variable, char separator) {
  std::vector<std::string> entries;
  const char* value = ::secure_getenv(variable);
  std::stringstream stream(value ? value : "");
  for (std::string entry; std::getline(stream, entry, separator);)
    if (!entry.empty()) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace

bool overlaps(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

Loader::Loader() {
  register_candidates_service();
  register_libraries_service();
  register_threads_service();
  for (const std::string& name : list_from_environment("TENON_OVERRIDES", ','))
    allow_overrides(name, true);
}

bool is_disabled(const std::string& name) {
  std::vector<std::string> disabled = list_from_environment("TENON_PLUGINS_DISABLE", ',');
  return std::find(disabled.begin(), disabled.end(), name) != disabled.end();
}

Refusal Loader::add_folder(const std::string& path) {
  std::string real = real_path(path);
  std::error_code error;
  if (real.empty())
    return {Stage::kTrust, Reason::kNotFound,
            "expected a folder with plugins, but there is none at " + path, "check the path"};
  std::lock_guard lock(mutex_);
  add_known_folders();  // the host's own come first
  fs::is_directory(real, error) ? scan(real) : scan_file(real);
  return accepted();
}

void Loader::add_known_folders() {
  if (knows_folders_) return;
  knows_folders_ = true;
  for (const std::string& entry : list_from_environment("TENON_PLUGINS", ','))
    scan_file(entry.substr(entry.find(':') + 1), entry.substr(0, entry.find(':')));
  for (const std::string& folder : own_plugin_folders()) scan(folder);
  for (const std::string& path : list_from_environment("TENON_PLUGIN_PATH", ':'))
    if (std::string folder = real_path(path); path[0] == '/' && !folder.empty()) scan(folder);
  if (std::string folder = real_path(kSystemFolder); !folder.empty()) scan(folder);
}

void Loader::scan(const std::string& folder) {
  if (std::find(folders_.begin(), folders_.end(), folder) != folders_.end()) return;
  folders_.push_back(folder);
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".so") files.push_back(entry->path());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) scan_file(file);
}

void Loader::scan_file(const std::string& path, const std::string& name) {
  Candidate candidate;
  candidate.is_named = !name.empty();
  Attempt attempt{.path = path};
  is_default_loaded_.store(false, std::memory_order_release);
  attempt.outcome = [&] {
    if (Refusal refusal = identify(path, candidate.file)) return refusal;
    if (Refusal refusal = read_note(candidate.file.path, candidate.manifest)) return refusal;
    if (candidate.is_named && (candidate.manifest.name != name || path[0] != '/'))
      return Refusal{Stage::kNote, Reason::kBadNote,
                     "TENON_PLUGINS: expected " + candidate.manifest.name + ":" +
                         candidate.file.path + ", got " + name + ":" + path,
                     ""};
    for (const Candidate& other : candidates_)
      if (other.is_named && !candidate.is_named && other.manifest.name == candidate.manifest.name &&
          !other.file.same_file(candidate.file))
        return Refusal{Stage::kNote, Reason::kNameTaken,
                       path + " gives way to " + other.file.path + ", which TENON_PLUGINS names",
                       ""};
    return check_note(candidate.file.path, candidate.manifest);
  }();
  auto is_this_file = [&](const Candidate& other) { return other.file.same_file(candidate.file); };
  if (std::any_of(candidates_.begin(), candidates_.end(), is_this_file)) return;
  // Other libraries may lie beside plugins.
  if (attempt.outcome.reason == Reason::kNoNote && !candidate.is_named) return;
  if (attempt.outcome) {
    // A plugin that lies in a folder is named by no caller, who would get the error.
    const Reason reason = attempt.outcome.reason;
    const bool cannot_load = reason == Reason::kSanitizer || reason == Reason::kEpoch ||
                             reason == Reason::kCpuFeature || reason == Reason::kBadNote;
    if (candidate.is_named)
      log(LogLevel::kWarning, "%s", attempt.outcome.text.c_str());
    else if (cannot_load && !is_disabled(candidate.manifest.name))
      log(LogLevel::kWarning, "%s; %s [%s]", attempt.outcome.text.c_str(),
          attempt.outcome.fix.c_str(), reason_name(reason));
    attempt.name = candidate.manifest.name;
    attempt.version = candidate.manifest.version;
    candidate.refusal = attempt.outcome;
    candidate.was_tried = true;
    (void)record(std::move(attempt));
  }
  if (!candidate.manifest.name.empty()) candidates_.push_back(std::move(candidate));
}

Refusal Loader::try_candidate(size_t index) {
  if (candidates_[index].was_tried) return candidates_[index].refusal;
  candidates_[index].was_tried = true;
  // By index: a plugin that starts may add folders, and so move the candidates.
  Trust trust = candidates_[index].is_named ? explicit_path_trust() : Trust::kStrict;
  Refusal refusal = load_recorded(candidates_[index].file.path, trust);
  candidates_[index].refusal = refusal;
  return refusal;
}

// The namespace is the host's own plugins'. Where it has none that define it, because a program
// contains the host and loads its plugins by their paths, every plugin may define it.
bool Loader::may_define_tenon(const FileIdentity& file) {
  add_known_folders();
  auto is_claim = [](const Candidate& other) {
    return overlaps(other.manifest.namespaces, {"tenon"}) && is_in_own_folder(other.file.path);
  };
  return is_in_own_folder(file.path) ||
         std::none_of(candidates_.begin(), candidates_.end(), is_claim);
}

bool Loader::provides_loaded_device(const std::vector<std::string>& kinds) const {
  return std::any_of(plugins_.begin(), plugins_.end(), [&](const auto& plugin) {
    if (!plugin->tables.has_device()) return false;
    const tenon_device_api& device = plugin->tables.device;
    return overlaps(kinds, {device.kind}) ||
           (device.compile && overlaps(kinds, {TENON_DEVICE_COMPILED}));
  });
}

void Loader::try_candidates(PluginKind kind) {
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Manifest& manifest = candidates_[i].manifest;
    if (manifest.kind != kind || manifest.name == kPolicyPlugin) continue;
    if (kind == PluginKind::kDevice && !manifest.is_eager) continue;
    if (kind == PluginKind::kKernels && !provides_loaded_device(manifest.kernels_for)) continue;
    if (candidates_[i].was_tried) continue;
    // These plugins load without being named, so no caller gets the error: log it once.
    if (Refusal refusal = try_candidate(i); refusal && refusal.reason != Reason::kDisabled)
      log(LogLevel::kWarning, "%s [%s]", refusal.text.c_str(), reason_name(refusal.reason));
  }
}

void Loader::load_default() {
  std::lock_guard lock(mutex_);
  if (is_default_loaded()) return;
  add_known_folders();
  for (PluginKind kind :
       {PluginKind::kOperators, PluginKind::kDevice, PluginKind::kKernels, PluginKind::kService})
    try_candidates(kind);
  is_default_loaded_.store(true, std::memory_order_release);
}

Refusal Loader::load_device(const std::string& kind) {
  std::lock_guard lock(mutex_);
  add_known_folders();
  Refusal first_refusal;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (!overlaps(candidates_[i].manifest.devices, {kind})) continue;
    Refusal refusal = try_candidate(i);
    if (!refusal) {
      load_kernels_for_loaded_devices();
      return accepted();
    }
    if (!first_refusal) first_refusal = refusal;
  }
  return first_refusal;
}

void Loader::load_kernels_for_loaded_devices() { try_candidates(PluginKind::kKernels); }

}  // namespace tenon::core
