// SPDX-License-Identifier: Apache-2.0
// The report for people.
#include <unistd.h>

#include <cstdio>
#include <map>

#include "harness/check.hpp"
#include "harness/text.hpp"
#include "report/report.hpp"

namespace tenon::kit {
namespace {

constexpr size_t kMaxToldFailures = 12;

const Check* find_check(const std::string& id) {
  for (const Check& check : all_checks())
    if (id == check.id) return &check;
  return nullptr;
}

class Terminal : public Progress {
 public:
  explicit Terminal(bool verbose) : verbose_(verbose), is_tty_(::isatty(STDERR_FILENO)) {}

  void started(const std::string& id, int number, int count) override {
    head_ = text("[", number, "/", count, "] ", id);
    show(head_);
  }
  void step(const std::string& what) override { show(head_ + ": " + what); }

  void finished(const Result& result) override {
    show("");
    for (const std::string& warning : result.warnings)
      std::printf("WARNING  %s: %s\n", result.id.c_str(), warning.c_str());
    if (result.outcome == Outcome::kPassed && !verbose_) return;
    if (result.outcome == Outcome::kAbsent && !verbose_) return;
    if (result.outcome == Outcome::kNotRun && !verbose_) return;  // print_summary counts them
    if (result.outcome == Outcome::kPassed || result.outcome == Outcome::kAbsent ||
        result.outcome == Outcome::kNotRun) {
      std::printf("%-8s %s%s\n", outcome_name(result.outcome), result.id.c_str(),
                  result.why.empty() ? "" : (": " + result.why).c_str());
    } else {
      tell(result);
    }
    if (verbose_)
      for (const std::string& note : result.notes) std::printf("         %s\n", note.c_str());
    std::fflush(stdout);
  }

 private:
  void show(std::string line) {
    if (!is_tty_) return;
    if (line.size() > 100) line.resize(100);
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
  }

  void tell(const Result& result) {
    const Check* check = find_check(result.id);
    std::printf("FAILED   %s", result.id.c_str());
    if (check) std::printf(": %s (%s)", check->asserts, check->section);
    std::printf("\n");
    size_t told = 0;
    for (const Failure& failure : result.failures) {
      if (failure.expected.empty() || ++told > kMaxToldFailures) continue;
      if (!failure.subject.empty()) std::printf("    %s\n", failure.subject.c_str());
      std::printf("    expected: %s\n    got:      %s", failure.expected.c_str(),
                  failure.got.c_str());
      std::printf(failure.count > 1 ? " (%d times)\n" : "\n", failure.count);
      if (!failure.fix.empty()) std::printf("    fix:      %s\n", failure.fix.c_str());
    }
    if (result.failures.size() > kMaxToldFailures)
      std::printf("    ... %zu failures in all\n", result.failures.size());
    if (!result.output.empty()) std::printf("    printed:  %s\n", result.output.c_str());
  }

  bool verbose_, is_tty_;
  std::string head_;
};

struct Counts {
  int passed = 0, failed = 0, absent = 0, not_run = 0;
};

}  // namespace

std::unique_ptr<Progress> make_progress(bool verbose) {
  return std::make_unique<Terminal>(verbose);
}

void print_summary(const Options& options, const std::vector<Result>& results, const Level& level) {
  std::vector<std::string> families;
  std::map<std::string, Counts> counts;
  for (const Result& result : results) {
    std::string family(family_of(result.id));
    if (!counts.count(family)) families.push_back(family);
    Counts& row = counts[family];
    row.passed += result.outcome == Outcome::kPassed;
    row.failed += result.outcome == Outcome::kFailed;
    row.absent += result.outcome == Outcome::kAbsent;
    row.not_run += result.outcome == Outcome::kNotRun;
  }
  std::map<std::string, int> not_run;  // by reason
  for (const Result& result : results)
    if (result.outcome == Outcome::kNotRun) ++not_run[result.why];
  for (const auto& [why, count] : not_run)
    std::printf("not run  %d %s: %s\n", count, count == 1 ? "check" : "checks", why.c_str());
  std::printf("\n%-12s %6s %6s %7s %6s\n", "", "passed", "failed", "not run", "absent");
  for (const std::string& family : families) {
    const Counts& row = counts[family];
    std::printf("%-12s %6d %6d %7d %6d\n", family.c_str(), row.passed, row.failed, row.not_run,
                row.absent);
  }
  bool is_first = true;
  for (const Result& result : results)
    for (const Figure& figure : result.figures) {
      if (is_first) std::printf("\n");
      is_first = false;
      std::printf("%-40s %12.4g %s\n", figure.name.c_str(), figure.value, figure.unit.c_str());
    }
  if (!options.only.empty()) return;
  std::printf("\n%s: level %s\n", options.plugin.c_str(), level_name(level.reached).c_str());
  if (level.missing.empty()) return;
  std::printf("for %s:\n", level_name(level.reached + 1).c_str());
  size_t told = 0;
  for (const std::string& missing : level.missing) {
    if (++told > kMaxToldFailures) break;
    std::printf("  %s\n", missing.c_str());
  }
  if (level.missing.size() > kMaxToldFailures)
    std::printf("  ... %zu in all\n", level.missing.size());
}

}  // namespace tenon::kit
