// SPDX-License-Identifier: Apache-2.0
// Loads plugins: by path, from folders at first use, and out again. docs/plugins.md tells the story
// for users.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "formats/json_writer.hpp"
#include "kernel_core/plugin/attempt.hpp"
#include "kernel_core/plugin/loaded_plugin.hpp"

namespace tenon::core {

// A plugin in a known folder. Its note was read; nothing of it has run.
struct Candidate {
  FileIdentity file;
  Manifest manifest;
  Refusal refusal;        // why it will not be loaded, if that is known already
  bool is_named = false;  // by TENON_PLUGINS: it stands for every plugin of its name
  bool was_tried = false;
};

class Loader {
 public:
  static Loader& instance();

  // `path` was named by the program itself.
  Refusal load(const std::string& path);
  // A table that came from no file.
  Refusal attach(const tenon_plugin* table, const std::string& origin);
  Refusal unload(const std::string& name);
  Refusal add_folder(const std::string& path);  // or one library
  // To the overrides of a plugin by name, or by path: then its note says the name; "*": all others.
  Refusal consent(const std::string& plugin, bool allowed);
  // What every program needs: operators, services, eager devices, kernels for them. A plugin that
  // cannot be loaded is recorded and does not matter here.
  void load_default();
  bool is_default_loaded() const { return is_default_loaded_.load(std::memory_order_acquire); }
  // A plugin that provides a device kind, and others' kernels for it. Accepted if there is none.
  Refusal load_device(const std::string& kind);
  void describe(JsonWriter& json);
  // A library that is no plugin, such as one written for another framework, under the rules for
  // plugins' files. It is never closed. `is_named`: the program itself said the path.
  Refusal open_foreign(const std::string& path, bool is_named, Library::Binding binding,
                       const Library*& opened);

 private:
  Loader();
  Refusal load_recorded(const std::string& path, Trust trust);
  Refusal record(Attempt attempt);
  Refusal load_file(const std::string& path, Trust trust, Attempt& attempt);
  Refusal check_name(const FileIdentity& file, const Manifest& manifest) const;
  Refusal load_plugin(std::unique_ptr<LoadedPlugin> plugin);
  void roll_back(std::unique_ptr<LoadedPlugin> plugin, Refusal& refusal);
  Refusal unload_plugin(LoadedPlugin& plugin);
  Refusal check_attached(const LoadedPlugin& plugin) const;
  bool may_define_tenon(const FileIdentity& file);
  // Where a policy is set, `copy` becomes what it has examined, which alone may be opened.
  Refusal check_policy(const FileIdentity& file, SealedCopy& copy);
  // Of a copy, for which $ORIGIN is no folder: opens what the library brings along, before it.
  // `needed_by`: what waits for the library itself.
  struct Waiting;
  Refusal open_companions(const std::string& path, const SealedCopy& copy,
                          std::vector<Library>& companions, const Waiting* needed_by = nullptr);
  Refusal try_candidate(size_t index);
  void try_candidates(PluginKind kind);
  void load_kernels_for_loaded_devices();
  bool provides_loaded_device(const std::vector<std::string>& kinds) const;
  LoadedPlugin* find_loaded(const std::string& name) const;

  void add_known_folders();
  void scan(const std::string& folder);
  // `name`: what TENON_PLUGINS calls it; empty for one that was found in a folder.
  void scan_file(const std::string& path, const std::string& name = "");
  void describe_loaded(JsonWriter& json) const;
  void describe_candidates(JsonWriter& json) const;
  void describe_attempts(JsonWriter& json) const;

  struct Resident {  // unloaded, but still mapped
    std::string name;
    FileIdentity file;
  };

  // Recursive: a plugin that starts may name a device, and so load another plugin. Not taken by
  // operator calls.
  std::recursive_mutex mutex_;
  std::vector<std::unique_ptr<LoadedPlugin>> plugins_;
  std::vector<std::unique_ptr<LoadedPlugin>>
      stranded_;  // failed to start, but something holds them
  std::vector<Candidate> candidates_;
  std::vector<std::string> folders_;
  std::vector<Resident> residents_;
  std::list<std::pair<std::string, Library>> foreign_;  // by their paths; never closed
  std::vector<const LoadedPlugin*> in_progress_;  // being loaded: their code may come back here
  const LoadedPlugin* leaving_ = nullptr;         // likewise being unloaded
  std::vector<Attempt> attempts_;                 // oldest first; of equal ones the latest
  bool knows_folders_ = false;
  std::atomic<bool> is_default_loaded_{false};
};

// The plugin that knows policies: loaded when one is set, and not before.
inline constexpr const char* kPolicyPlugin = "policy";

// Is something in both lists?
bool overlaps(const std::vector<std::string>& a, const std::vector<std::string>& b);

// Is the plugin switched off by TENON_PLUGINS_DISABLE?
bool is_disabled(const std::string& name);

}  // namespace tenon::core
