// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include "harness/check.hpp"
#include "harness/runner.hpp"
#include "options.hpp"
#include "report/report.hpp"

using namespace tenon::kit;

namespace {

enum { kConforms = 0, kFails = 1, kCannotRun = 2 };

void list_checks() {
  for (const Check& check : all_checks())
    std::printf("%-26s %s (%s)\n", check.id, check.asserts, check.section);
  std::printf("%-26s %s\n", "run.crash, .hang, .exit", "No check ends its process or hangs.");
}

bool write(const std::string& path, const std::string& text) {
  std::string problem = write_file(path, text);
  if (problem.empty()) return true;
  std::fprintf(stderr, "tenon-conformance: %s\n", problem.c_str());
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  switch (parse_options(count, arguments, options)) {
    case Parsed::kDone:
      return kConforms;
    case Parsed::kError:
      return kCannotRun;
    case Parsed::kRun:
      break;
  }
  if (options.list) {
    list_checks();
    return kConforms;
  }
  // The user named the file, so it is trusted; no other plugin is to be found by the way.
  ::setenv("TENON_PLUGIN_TRUST", "any", 1);
  ::unsetenv("TENON_PLUGIN_PATH");
  ::unsetenv("TENON_FALLBACK");

  std::vector<Result> results = run_checks(options, *make_progress(options.verbose));
  if (results.empty()) {
    std::fprintf(stderr, "tenon-conformance: --only fits no check; --list names them\n");
    return kCannotRun;
  }
  Level level = judge_level(results);
  print_summary(options, results, level);

  bool written = true;
  if (!options.json.empty()) written &= write(options.json, to_json(options, results, level));
  if (!options.junit.empty()) written &= write(options.junit, to_junit(options, results));
  if (options.stamp) {
    std::string problem = write_stamp(options, level);
    if (!problem.empty()) std::fprintf(stderr, "tenon-conformance: %s\n", problem.c_str());
    written &= problem.empty();
  }
  if (!written) return kCannotRun;
  for (const Result& result : results)
    if (result.outcome == Outcome::kFailed) return kFails;
  if (options.level > level.reached && options.only.empty()) return kFails;
  return kConforms;
}
