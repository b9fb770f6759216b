// SPDX-License-Identifier: Apache-2.0
#include "harness/result.hpp"

namespace tenon::kit {

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kAbsent:
      return "absent";
    case Outcome::kNotRun:
      return "not run";
  }
  return "?";
}

const char* reason_name(Reason reason) {
  switch (reason) {
    case Reason::kAssertion:
      return "assertion";
    case Reason::kCrash:
      return "crash";
    case Reason::kHang:
      return "hang";
    case Reason::kExit:
      return "exit";
  }
  return "?";
}

}  // namespace tenon::kit
