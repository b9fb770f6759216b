// SPDX-License-Identifier: Apache-2.0
// A plugin on its way into the process, and what must be taken back if the way ends early.
#pragma once

#include "kernel_core/plugin/library.hpp"
#include "kernel_core/plugin/note.hpp"
#include "kernel_core/plugin/tables.hpp"
#include "kernel_core/plugin/trust.hpp"

namespace tenon::core {

// Its address is the owner by which the other rooms know what belongs to it. Never moves.
struct LoadedPlugin {
  FileIdentity file;
  Manifest manifest;
  const tenon_plugin* attached = nullptr;  // the table that was given, where there is no file
  SealedCopy copy;                         // what a policy has examined, until it is opened
  std::vector<Library> companions;         // opened before the library, which needs them
  Library library;                         // everything below points into it
  Tables tables = {};
  uint32_t device_kind = 0;
  bool is_published = false;

  std::string origin() const {  // "acme 1.4.2 (/path/libtenon_acme.so)"
    return manifest.name + " " + manifest.version + " (" + file.path + ")";
  }
};

// Stages of loading that run plugin code, in this order.
Refusal open_and_query(LoadedPlugin& plugin);  // fills tables; one that is attached is open already
Refusal publish(LoadedPlugin& plugin);         // operators, kernels and device: all or none
Refusal start(LoadedPlugin& plugin);

// Stages of unloading.
Refusal check_leases(
    const LoadedPlugin& plugin);  // services and layers, which cannot be taken back
Refusal stop(LoadedPlugin& plugin);
Refusal unpublish(
    LoadedPlugin& plugin);  // refused, with everything as it was, if a device is in use

}  // namespace tenon::core
