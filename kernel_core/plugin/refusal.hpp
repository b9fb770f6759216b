// SPDX-License-Identifier: Apache-2.0
// Why a plugin was not taken: the stage that said no, a reason that programs can compare, a text
// that people can read, and what to do about it.
#pragma once

#include <tenon/abi.h>

#include <string>

namespace tenon::core {

enum class Stage : uint8_t { kTrust, kNote, kOpen, kQuery, kNegotiate, kPublish, kStart, kUnload };

// Every reason, once. The names are part of the interface: plugin_describe prints them and
// docs/plugins.md explains them. Exit codes of `tenon plugins doctor` follow their order: append.
#define TENON_REASONS(X)                                        \
  X(kNone, "NONE", TENON_OK)                                    \
  X(kNotFound, "NOT_FOUND", TENON_NOT_FOUND)                    \
  X(kNotAllowedDir, "NOT_ALLOWED_DIR", TENON_PERMISSION_DENIED) \
  X(kWritable, "WRITABLE", TENON_PERMISSION_DENIED)             \
  X(kBadElf, "BAD_ELF", TENON_INVALID_ARGUMENT)                 \
  X(kWrongArch, "WRONG_ARCH", TENON_UNSUPPORTED)                \
  X(kNoNote, "NO_NOTE", TENON_INVALID_ARGUMENT)                 \
  X(kBadNote, "BAD_NOTE", TENON_INVALID_ARGUMENT)               \
  X(kEpoch, "EPOCH", TENON_UNSUPPORTED)                         \
  X(kSanitizer, "SANITIZER", TENON_FAILED_PRECONDITION)         \
  X(kCpuFeature, "CPU_FEATURE", TENON_UNSUPPORTED)              \
  X(kDisabled, "DISABLED", TENON_PERMISSION_DENIED)             \
  X(kNameTaken, "NAME_TAKEN", TENON_ALREADY_EXISTS)             \
  X(kMissingDep, "MISSING_DEP", TENON_UNAVAILABLE)              \
  X(kMissingSymbol, "MISSING_SYMBOL", TENON_UNAVAILABLE)        \
  X(kOpenFailed, "OPEN_FAILED", TENON_UNAVAILABLE)              \
  X(kQueryFailed, "QUERY_FAILED", TENON_FAILED_PRECONDITION)    \
  X(kBadTable, "BAD_TABLE", TENON_INTERNAL)                     \
  X(kNoDevice, "NO_DEVICE", TENON_UNAVAILABLE)                  \
  X(kOpConflict, "OP_CONFLICT", TENON_ALREADY_EXISTS)           \
  X(kStartFailed, "START_FAILED", TENON_FAILED_PRECONDITION)    \
  X(kInUse, "IN_USE", TENON_FAILED_PRECONDITION)                \
  X(kStopFailed, "STOP_FAILED", TENON_FAILED_PRECONDITION)      \
  X(kNotPinned, "NOT_PINNED", TENON_PERMISSION_DENIED)          \
  X(kBadSignature, "BAD_SIGNATURE", TENON_PERMISSION_DENIED)    \
  X(kCannotVerify, "CANNOT_VERIFY", TENON_PERMISSION_DENIED)

enum class Reason : uint8_t {
#define TENON_REASON_ENUM(reason, name, status) reason,
  TENON_REASONS(TENON_REASON_ENUM)
#undef TENON_REASON_ENUM
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
