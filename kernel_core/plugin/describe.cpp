// SPDX-License-Identifier: Apache-2.0
// Everything that is known about plugins, as JSON. docs/plugins.md lists the members.
#include <algorithm>

#include "kernel_core/plugin/host_location.hpp"
#include "kernel_core/plugin/loader.hpp"
#include "kernel_core/plugin/services.hpp"

namespace tenon::core {
namespace {

void write_note(JsonWriter& json, const FileIdentity& file, const Manifest& manifest) {
  json.string("name", manifest.name);
  json.string("version", manifest.version);
  json.string("path", file.path);
  json.string("kind", plugin_kind_name(manifest.kind));
  json.number("epoch_min", manifest.epoch_min);
  json.number("epoch_max", manifest.epoch_max);
  json.strings("devices", manifest.devices);
  json.strings("namespaces", manifest.namespaces);
  json.strings("kernels_for", manifest.kernels_for);
  json.strings("cpu", manifest.cpu);
  json.boolean("eager", manifest.is_eager);
  json.boolean("optional", manifest.is_optional);
}

}  // namespace

void Loader::describe(JsonWriter& json) {
  std::lock_guard lock(mutex_);
  add_known_folders();
  json.object("", [&] {
    json.object("host", [&] {
      json.string("library", host_location().library);
      json.number("epoch", TENON_ABI_EPOCH);
      json.number("revision", TENON_ABI_REVISION);
      json.string("sanitizer", sanitizer_name(TENON_SANITIZER_HERE));
    });
    json.strings("folders", folders_);
    json.array("plugins", [&] {
      describe_loaded(json);
      describe_candidates(json);
    });
    json.array("attempts", [&] { describe_attempts(json); });
  });
}

void Loader::describe_loaded(JsonWriter& json) const {
  for (const auto& plugin : plugins_)
    json.object("", [&] {
      json.string("state", "loaded");
      write_note(json, plugin->file, plugin->manifest);
      json.string("vendor", plugin->tables.plugin.vendor);
      json.number("operators", plugin->tables.ops.size());
      json.number("kernels", plugin->tables.kernels.size());
      KernelReport kernels = report_kernels(plugin.get());
      json.number("overrides", kernels.overrides);
      json.number("held_back", kernels.held_back);
      json.strings("unknown_operators", kernels.unknown_operators);
      json.strings("services", services_of(plugin.get()));
    });
  for (const Resident& resident : residents_)
    json.object("", [&] {
      json.string("state", "resident");
      write_note(json, resident.file, {.name = resident.name});
    });
}

void Loader::describe_candidates(JsonWriter& json) const {
  for (const Candidate& candidate : candidates_) {
    auto is_this_file = [&](const auto& plugin) { return plugin->file.same_file(candidate.file); };
    if (std::any_of(plugins_.begin(), plugins_.end(), is_this_file)) continue;
    json.object("", [&] {
      json.string("state", candidate.refusal ? "refused" : "known");
      write_note(json, candidate.file, candidate.manifest);
      if (candidate.refusal) json.string("reason", reason_name(candidate.refusal.reason));
    });
  }
}

void Loader::describe_attempts(JsonWriter& json) const {
  for (const Attempt& attempt : attempts_)
    json.object("", [&] {
      json.string("path", attempt.path);
      json.string("name", attempt.name);
      json.string("version", attempt.version);
      json.string("stage", stage_name(attempt.outcome.stage));
      json.string("reason", reason_name(attempt.outcome.reason));
      json.string("text", attempt.outcome.text);
      json.string("fix", attempt.outcome.fix);
      json.number("count", attempt.count);
    });
}

}  // namespace tenon::core
