// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/refusal.hpp"

#include <iterator>

#include "kernel_core/types/status.hpp"

namespace tenon::core {
namespace {

constexpr const char* kStages[] = {"trust",     "note",    "open",  "query",
                                   "negotiate", "publish", "start", "unload"};
static_assert(std::size(kStages) == static_cast<size_t>(Stage::kUnload) + 1);

struct ReasonInfo {
  const char* name;
  tenon_status status;
};
constexpr ReasonInfo kReasons[] = {
    {"NONE", TENON_OK},
    {"NOT_FOUND", TENON_NOT_FOUND},
    {"NOT_ALLOWED_DIR", TENON_PERMISSION_DENIED},
    {"WRITABLE", TENON_PERMISSION_DENIED},
    {"BAD_ELF", TENON_INVALID_ARGUMENT},
    {"WRONG_ARCH", TENON_UNSUPPORTED},
    {"NO_NOTE", TENON_INVALID_ARGUMENT},
    {"BAD_NOTE", TENON_INVALID_ARGUMENT},
    {"EPOCH", TENON_UNSUPPORTED},
    {"SANITIZER", TENON_FAILED_PRECONDITION},
    {"CPU_FEATURE", TENON_UNSUPPORTED},
    {"DISABLED", TENON_PERMISSION_DENIED},
    {"NAME_TAKEN", TENON_ALREADY_EXISTS},
    {"MISSING_DEP", TENON_UNAVAILABLE},
    {"MISSING_SYMBOL", TENON_UNAVAILABLE},
    {"OPEN_FAILED", TENON_UNAVAILABLE},
    {"QUERY_FAILED", TENON_FAILED_PRECONDITION},
    {"BAD_TABLE", TENON_INTERNAL},
    {"NO_DEVICE", TENON_UNAVAILABLE},
    {"OP_CONFLICT", TENON_ALREADY_EXISTS},
    {"START_FAILED", TENON_FAILED_PRECONDITION},
    {"IN_USE", TENON_FAILED_PRECONDITION},
    {"STOP_FAILED", TENON_FAILED_PRECONDITION},
};
static_assert(std::size(kReasons) == static_cast<size_t>(Reason::kStopFailed) + 1);

}  // namespace

const char* stage_name(Stage stage) { return kStages[static_cast<size_t>(stage)]; }
const char* reason_name(Reason reason) { return kReasons[static_cast<size_t>(reason)].name; }
tenon_status reason_status(Reason reason) { return kReasons[static_cast<size_t>(reason)].status; }

tenon_status report(const Refusal& refusal, tenon_err* err) {
  if (!refusal) return TENON_OK;
  return fail(err, reason_status(refusal.reason), "%s%s%s [%s]", refusal.text.c_str(),
              refusal.fix.empty() ? "" : "; ", refusal.fix.c_str(), reason_name(refusal.reason));
}

}  // namespace tenon::core
