// SPDX-License-Identifier: Apache-2.0
// Why a plugin was not taken: the stage that said no, a reason that programs can compare, a text
// that people can read, and what to do about it.
#pragma once

#include <tenon/abi.h>

#include <string>

namespace tenon::core {

enum class Stage : uint8_t { kTrust, kNote, kOpen, kQuery, kNegotiate, kPublish, kStart, kUnload };

// The names are part of the interface: plugin_describe prints them, docs/plugins.md explains them.
enum class Reason : uint8_t {
  kNone,           // accepted
  kNotFound,       // no such file
  kNotAllowedDir,  // somebody else could replace the file
  kWritable,       // somebody else could change the file
  kBadElf,         // not a shared library, or a damaged one
  kWrongArch,      // built for another processor
  kNoNote,         // a shared library, but not a Tenon plugin
  kBadNote,        // the note is damaged or contradicts itself
  kEpoch,          // speaks other ABI epochs
  kSanitizer,      // built with another sanitizer than the host
  kCpuFeature,     // needs instructions that this processor lacks
  kDisabled,       // TENON_PLUGINS_DISABLE names it
  kNameTaken,      // another file already serves under this name
  kMissingDep,     // libraries that it needs are absent
  kMissingSymbol,  // a symbol that it needs, or the one it must export, is absent
  kOpenFailed,     // the dynamic loader refused it for another reason
  kQueryFailed,    // its tenon_plugin_query said no
  kBadTable,       // what tenon_plugin_query returned is not sound
  kNoDevice,       // its devices could not be enumerated: a driver is absent
  kOpConflict,     // another plugin defines one of its operators differently
  kStartFailed,    // its start() failed, and everything was taken back
  kInUse,          // unload: something of it is alive
  kStopFailed,     // unload: its stop() failed, or it has none
};

const char* stage_name(Stage stage);     // "trust"
const char* reason_name(Reason reason);  // "NOT_ALLOWED_DIR"
tenon_status reason_status(Reason reason);

// What every stage answers. Converts to true if the plugin was refused:
//
//   if (Refusal refusal = check_note(...)) return refusal;
struct [[nodiscard]] Refusal {
  Stage stage = Stage::kTrust;
  Reason reason = Reason::kNone;
  std::string text;  // expected, got
  std::string fix;   // may be empty

  explicit operator bool() const { return reason != Reason::kNone; }
};

inline Refusal accepted() { return {}; }

// Report as "text; fix [REASON]".
tenon_status report(const Refusal& refusal, tenon_err* err);

}  // namespace tenon::core
