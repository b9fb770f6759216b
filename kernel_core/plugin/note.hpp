// SPDX-License-Identifier: Apache-2.0
// Second stage: what a plugin says about itself before any of its code runs.
#pragma once

#include <string>
#include <vector>

#include "kernel_core/plugin/refusal.hpp"

namespace tenon::core {

// Also the order in which the plugins of a folder load: later kinds refer to earlier ones.
enum class PluginKind : uint8_t { kOperators, kDevice, kKernels, kService };

const char* plugin_kind_name(PluginKind kind);

// The pre-load note, taken apart.
struct Manifest {
  std::string name, version;
  uint32_t epoch_min = 0, epoch_max = 0;
  uint32_t sanitizer = 0;
  PluginKind kind = PluginKind::kDevice;
  std::vector<std::string> devices;      // device kinds that it provides
  std::vector<std::string> namespaces;   // of the operators that it defines
  std::vector<std::string> kernels_for;  // device kinds of others for which it brings kernels
  std::vector<std::string> cpu;          // processor features that it needs
  bool is_eager = false;                 // a device that is loaded at start, not at first use
  bool is_optional = false;              // its kernels for others run only where they are chosen
  bool is_attached = false;  // there is no file, so no note, and nothing that the table is held to
  bool needs_consent = false;     // to kernels of others' operators on others' devices
  bool may_define_tenon = false;  // it may define symbols in namespace tenon
};

// Plugin names, namespaces and device kinds all look alike: [a-z][a-z0-9_]*
bool is_plugin_name(const std::string& text);

// Parse the note in the file at `path`. `descriptor`: the file, if it is open already.
Refusal read_note(const std::string& path, Manifest& manifest, int descriptor = -1);

// Does the plugin fit this host and this machine?
Refusal check_note(const std::string& path, const Manifest& manifest);

const char* sanitizer_name(uint32_t sanitizer);

}  // namespace tenon::core
