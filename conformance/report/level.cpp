// SPDX-License-Identifier: Apache-2.0
// L0: a device that computes nothing itself keeps the contract.
// L1: it computes, correctly, and nothing of float32, int64 and bool falls back to the host.
// L2: streams, more dtypes, many threads.
// L3: graphs, profiles, collectives.
#include <map>
#include <string_view>

#include "harness/check.hpp"
#include "harness/text.hpp"
#include "report/report.hpp"

namespace tenon::kit {
namespace {

// The level that a check counts for; -1: for none.
int level_of(std::string_view id) {
  static const std::map<std::string_view, int> families = {
      {"static", 0},  {"lifecycle", 0}, {"skew", 0},    {"faults", 0},    {"memory", 0},
      {"run", 0},     {"process", 0},   {"ops", 1},     {"gradients", 1}, {"async", 2},
      {"threads", 2}, {"graph", 3},     {"profile", 3}, {"collective", 3}};
  if (id == "ops.breadth") return 2;
  auto found = families.find(family_of(id));
  return found == families.end() ? -1 : found->second;
}

// Checks of groups that a device may do without at any level.
bool may_be_absent(std::string_view id, int level) {
  if (family_of(id) == "skew") return true;  // there may be nothing to launch
  if (id == "memory.joined") return true;    // few allocators place allocations end to end
  if (id == "memory.peer") return true;      // it takes two devices that reach each other
  if (id == "memory.offsets") return true;   // it takes more than 4 GiB
  if (id == "memory.devices") return true;   // it takes two devices
  // The device's kernels may be of other kinds; that it has any, and that they are right, say
  // these.
  if (family_of(id) == "ops")
    return id != "ops.values" && id != "ops.coverage" && id != "ops.breadth";
  return level == 0 && id.substr(0, 9) == "lifecycle";
}

}  // namespace

Level judge_level(const std::vector<Result>& results) {
  std::map<std::string_view, const Result*> by_id;
  for (const Result& result : results) by_id[result.id] = &result;
  Level level;
  auto hold_against = [&](const std::string& id, const std::string& what) {
    level.missing.push_back(text(id, " ", what));
  };
  for (int wanted = 0; wanted <= 3; ++wanted) {
    level.missing.clear();
    for (const Check& check : all_checks()) {
      if (level_of(check.id) != wanted) continue;
      auto found = by_id.find(check.id);
      if (found == by_id.end()) {
        hold_against(check.id, "was not selected");
      } else if (found->second->outcome == Outcome::kAbsent) {
        if (!may_be_absent(check.id, wanted))
          hold_against(check.id, "absent: " + found->second->why);
      } else if (found->second->outcome != Outcome::kPassed) {
        hold_against(check.id, outcome_name(found->second->outcome));
      }
    }
    if (wanted == 0)
      for (const char* id : {"run.crash", "run.hang", "run.exit"})
        if (by_id.count(id) && by_id[id]->outcome != Outcome::kPassed) hold_against(id, "failed");
    if (!level.missing.empty()) return level;
    level.reached = wanted;
  }
  return level;
}

std::string level_name(int level) { return level < 0 ? "none" : text("L", level); }

}  // namespace tenon::kit
