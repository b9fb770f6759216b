// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/note.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "formats/elf_file.hpp"
#include "formats/json_fields.hpp"
#include "kernel_core/plugin/cpu_features.hpp"

namespace tenon::core {
namespace {

constexpr uint32_t kOldestEpoch = TENON_ABI_EPOCH;  // with epoch 2: the one before as well
constexpr const char* kSection = ".note.tenon";
constexpr uint32_t kNoteType = 1;
constexpr char kOwner[8] = "TENON";
constexpr uint64_t kHeaderBytes = offsetof(tenon_note, epoch_min);
constexpr const char* kKinds[] = {"operators", "device", "kernels", "service"};
constexpr const char* kSanitizers[] = {"none", "address", "thread"};  // by TENON_SANITIZER_*

Refusal refuse(Reason reason, std::string text, std::string fix) {
  return {Stage::kNote, reason, std::move(text), std::move(fix)};
}

Refusal refuse_note(const std::string& path, const std::string& what) {
  return refuse(Reason::kBadNote, "the note of " + path + " is not sound: " + what,
                "let tenon_add_plugin() write it");
}

// By ElfFile::Problem: what the loader calls it, and what to do.
constexpr struct {
  Reason reason;
  const char* fix;
} kFileProblems[] = {{},
                     {Reason::kNotFound, "check its permissions"},
                     {Reason::kBadElf, "name the plugin's .so file"},
                     {Reason::kWrongArch, "get the plugin for this architecture"},
                     {Reason::kBadElf, "link the plugin with -shared"},
                     {Reason::kBadElf, "build or download it again"}};

// The text in a fixed field; false if it does not end inside.
template <size_t N>
bool take_text(const char (&field)[N], std::string& text) {
  size_t length = strnlen(field, N);
  text.assign(field, length);
  return length < N;
}

Refusal take_lists(const std::string& path, JsonFields& fields, Manifest& manifest) {
  auto kind = std::find(std::begin(kKinds), std::end(kKinds), fields.strings["kind"]);
  if (kind == std::end(kKinds))
    return refuse_note(path, "expected kind operators, device, kernels or service, got '" +
                                 fields.strings["kind"] + "'");
  manifest.kind = static_cast<PluginKind>(kind - std::begin(kKinds));
  manifest.devices = fields.lists["devices"];
  manifest.namespaces = fields.lists["namespaces"];
  manifest.kernels_for = fields.lists["kernels_for"];
  manifest.cpu = fields.lists["cpu"];
  manifest.is_eager = fields.flags["eager"];
  manifest.is_optional = fields.flags["optional"];
  for (const auto* names : {&manifest.devices, &manifest.namespaces, &manifest.kernels_for})
    for (const std::string& name : *names)
      if (!is_plugin_name(name) && name != TENON_DEVICE_COMPILED)
        return refuse_note(path, "expected names like [a-z][a-z0-9_]*, got '" + name + "'");
  return accepted();
}

}  // namespace

bool is_plugin_name(const std::string& text) {
  auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  auto is_inner = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_inner);
}

const char* plugin_kind_name(PluginKind kind) { return kKinds[static_cast<size_t>(kind)]; }

const char* sanitizer_name(uint32_t sanitizer) {
  return sanitizer < std::size(kSanitizers) ? kSanitizers[sanitizer] : "unknown";
}

Refusal read_note(const std::string& path, Manifest& manifest, int descriptor) {
  ElfFile file;
  std::string text;
  if (auto problem = descriptor < 0 ? file.open(path, text) : file.open(descriptor, path, text);
      problem != ElfFile::Problem::kNone) {
    const auto& [reason, fix] = kFileProblems[static_cast<size_t>(problem)];
    return refuse(reason, text, fix);
  }
  const Elf64_Shdr* section = file.find_section(kSection);
  if (!section)
    return refuse(Reason::kNoNote, path + " is no Tenon plugin: it has no section " + kSection,
                  "build it with tenon_add_plugin(), or add TENON_PLUGIN_NOTE to a source file");

  tenon_note note{};
  std::vector<char> bytes = file.contents(*section, sizeof note);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&note));
  if (bytes.size() < kHeaderBytes || note.type != kNoteType ||
      note.name_size != strlen(kOwner) + 1 || std::memcmp(note.owner, kOwner, note.name_size) != 0)
    return refuse_note(path, "expected type 1 and owner TENON");
  // A later revision may append to the note; a shorter one there never was.
  if (bytes.size() < sizeof note || note.desc_size < sizeof note - kHeaderBytes)
    return refuse_note(path, "expected " + std::to_string(sizeof note) + " bytes, got " +
                                 std::to_string(bytes.size()));

  if (note.reserved != 0) return refuse_note(path, "its reserved word is not 0");
  std::string json;
  if (!take_text(note.name, manifest.name) || !take_text(note.version, manifest.version) ||
      !take_text(note.json, json))
    return refuse_note(path, "a text does not end inside its field");
  if (!is_plugin_name(manifest.name))
    return refuse_note(path, "expected a name like [a-z][a-z0-9_]*, got '" + manifest.name + "'");
  manifest.epoch_min = note.epoch_min;
  manifest.epoch_max = note.epoch_max;
  manifest.sanitizer = note.sanitizer;
  JsonFields fields;
  if (!parse_json_fields(json, fields))
    return refuse_note(path, "its JSON does not parse: " + json);
  return take_lists(path, fields, manifest);
}

Refusal check_note(const std::string& path, const Manifest& manifest) {
  std::string plugin = "plugin " + manifest.name + " " + manifest.version + " (" + path + ")";
  auto range = [](uint32_t low, uint32_t high) {
    return std::to_string(low) + ".." + std::to_string(high);
  };
  if (manifest.epoch_min > manifest.epoch_max)
    return refuse_note(path, "its epoch range is " + range(manifest.epoch_min, manifest.epoch_max));
  if (manifest.epoch_min > TENON_ABI_EPOCH || manifest.epoch_max < kOldestEpoch)
    return refuse(Reason::kEpoch,
                  plugin + " speaks ABI epochs " + range(manifest.epoch_min, manifest.epoch_max) +
                      ", expected one of " + range(kOldestEpoch, TENON_ABI_EPOCH),
                  manifest.epoch_min > TENON_ABI_EPOCH
                      ? "upgrade Tenon, or install an older " + manifest.name
                      : "upgrade " + manifest.name);
  if (manifest.sanitizer != TENON_SANITIZER_HERE)
    return refuse(Reason::kSanitizer,
                  plugin + " is built with sanitizer " + sanitizer_name(manifest.sanitizer) +
                      ", the host with " + sanitizer_name(TENON_SANITIZER_HERE),
                  "build both alike");
  std::string missing;
  for (const std::string& feature : manifest.cpu)
    if (!cpu_has(feature)) missing += (missing.empty() ? "" : ", ") + feature;
  if (!missing.empty())
    return refuse(Reason::kCpuFeature,
                  plugin + " needs processor features that are absent here: " + missing,
                  "install a build for this processor");
  return accepted();
}

}  // namespace tenon::core
