// SPDX-License-Identifier: Apache-2.0
#include "harness/runner.hpp"

#include <map>
#include <set>
#include <sstream>

#include "harness/check.hpp"
#include "harness/child.hpp"
#include "harness/session.hpp"
#include "harness/text.hpp"

namespace tenon::kit {
namespace {

// The first check that `check` needs and that failed or did not run; empty if none. What was not
// selected is taken for granted; what is absent, a check finds out for itself.
std::string unmet_need(const Check& check, const std::map<std::string, Outcome>& outcomes) {
  std::istringstream needs(check.needs);
  for (std::string need; needs >> need;) {
    auto found = outcomes.find(need);
    if (found == outcomes.end()) continue;
    if (found->second == Outcome::kFailed || found->second == Outcome::kNotRun) return need;
  }
  return "";
}

Result summarize(const char* id, Reason reason, const std::vector<Result>& results) {
  Result summary;
  summary.id = id;
  for (const Result& result : results)
    for (const Failure& failure : result.failures) {
      if (failure.reason != reason) continue;
      summary.outcome = Outcome::kFailed;
      std::string subject = failure.subject.empty() ? "" : " " + failure.subject;
      summary.failures.push_back(
          {"", "no check ends so", result.id + subject + ": " + failure.got, failure.fix, reason});
    }
  return summary;
}

// Checks of one kind can share a process, and an open device: those that call the plugin's tables,
// and those that call operators through the host. Others need a process without either.
enum class Kind { kAlone, kTables, kOperators };
Kind kind_of(std::string_view id) {
  static const std::set<std::string_view> kTables = {
      "memory", "async", "pool", "graph", "profile", "compile", "collective", "exchange"};
  static const std::set<std::string_view> kOperators = {"async.kernels", "async.kernels_overlap",
                                                        "graph.kernels"};
  if (id == "ops.typed") return Kind::kAlone;  // its host has other tables
  if (kOperators.count(id)) return Kind::kOperators;
  static const std::set<std::string_view> kOnTables = {"lifecycle.describe", "lifecycle.sync",
                                                       "lifecycle.double_open", "perf.copy",
                                                       "perf.allocate"};
  if (kTables.count(family_of(id)) || kOnTables.count(id) || family_of(id) == "faults" ||
      id.substr(0, 16) == "skew.understand_")
    return Kind::kTables;
  static const std::set<std::string_view> kWithOperators = {"ops", "perf", "gradients", "subgraph"};
  return kWithOperators.count(family_of(id)) ? Kind::kOperators : Kind::kAlone;
}

// What other checks saw calls change.
Result gather(const Check& check, const std::vector<Result>& results) {
  Result gathered;
  gathered.id = check.id;
  for (const Result& result : results)
    for (const Violation& violation : result.violations) {
      if (violation.id != check.id) continue;
      gathered.outcome = Outcome::kFailed;
      Failure failure = violation.failure;
      bool is_known = false;
      for (Failure& told : gathered.failures) {
        if (told.expected != failure.expected) continue;
        is_known = true;
        ++told.count;
      }
      if (is_known) continue;
      failure.got += text(" (during ", result.id, ")");
      gathered.failures.push_back(std::move(failure));
      if (gathered.output.empty()) gathered.output = result.output;
    }
  return gathered;
}

}  // namespace

std::vector<Result> run_checks(const Options& options, Progress& progress) {
  std::vector<const Check*> selected;
  for (const Check& check : all_checks())
    if (is_selected(check.id, options.only)) selected.push_back(&check);

  std::vector<Result> results;
  std::map<std::string, Outcome> outcomes;
  std::map<std::string, std::string> culprits;  // of those not run: the check that failed
  std::set<std::string> tainted;  // operators that failed one check: others would only repeat it
  ChildProcess kept;
  Kind kept_kind = Kind::kAlone;
  bool is_slow = false;
  int number = 0;
  for (const Check* check : selected) {
    progress.started(check->id, ++number, static_cast<int>(selected.size()));
    Result result;
    std::string need = unmet_need(*check, outcomes);
    if (!check->run) {
      result = gather(*check, results);
    } else if (need.empty()) {
      // A device may be one process's alone: there are never two that have it open.
      Kind kind = is_slow ? kind_of(check->id) : Kind::kAlone;
      if (kind != kept_kind) kept.end();
      kept_kind = kind;
      result = run_in_child(
          *check, options.plugin, options.time_limit, tainted,
          [&](const std::string& step) { progress.step(step); },
          kind == Kind::kAlone ? nullptr : &kept);
      is_slow |= result.open_seconds > kSlow;
    } else {
      result.id = check->id;
      result.outcome = Outcome::kNotRun;
      const std::string& before = outcomes[need] == Outcome::kFailed ? need : culprits[need];
      result.why = text(culprits[check->id] = before, " failed");
    }
    for (const Failure& failure : result.failures)
      if (!failure.subject.empty()) tainted.insert(failure.subject);
    outcomes[check->id] = result.outcome;
    progress.finished(result);
    results.push_back(std::move(result));
  }
  for (auto [id, reason] : {std::pair("run.crash", Reason::kCrash),
                            {"run.hang", Reason::kHang},
                            {"run.exit", Reason::kExit}}) {
    if (!is_selected(id, options.only)) continue;
    Result summary = summarize(id, reason, results);
    progress.finished(summary);
    results.push_back(std::move(summary));
  }
  return results;
}

}  // namespace tenon::kit
