// SPDX-License-Identifier: Apache-2.0
// What came of a check.
#pragma once

#include <string>
#include <vector>

namespace tenon::kit {

enum class Outcome {
  kPassed,
  kFailed,
  kAbsent,  // nothing to check: the plugin does not offer it
  kNotRun   // a check that it depends on failed
};

// How a check found out. The last three are also failures of run.crash, run.hang and run.exit.
enum class Reason { kAssertion, kCrash, kHang, kExit };

struct Failure {
  std::string subject;  // the operator, or empty
  std::string expected, got, fix;
  Reason reason = Reason::kAssertion;
  int count = 1;  // how often the same was found
};

struct Figure {
  std::string name, unit;
  double value = 0;
};

// What a call changed in the process, seen while a check ran: a failure of the check `id`.
struct Violation {
  std::string id;
  Failure failure;
};

struct Result {
  std::string id;
  Outcome outcome = Outcome::kPassed;
  std::string why;  // of kAbsent and kNotRun
  std::vector<Failure> failures;
  std::vector<Violation> violations;
  std::vector<Figure> figures;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  std::string output;  // the end of what the plugin printed
  double seconds = 0;
  double open_seconds = 0;  // the longest that a function took which each program calls once
};

const char* outcome_name(Outcome);
const char* reason_name(Reason);

}  // namespace tenon::kit
