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
#define TENON_REASON_INFO(reason, name, status) {name, status},
    TENON_REASONS(TENON_REASON_INFO)
#undef TENON_REASON_INFO
};

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
