// SPDX-License-Identifier: Apache-2.0
// Runs the selected checks, one after the other.
#pragma once

#include "harness/result.hpp"
#include "options.hpp"

namespace tenon::kit {

// Hears how the run goes.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void started(const std::string& id, int number, int count) = 0;
  virtual void step(const std::string& what) = 0;
  virtual void finished(const Result&) = 0;
};

// One result for each check selected, then run.crash, run.hang and run.exit, which sum up how
// checks ended.
std::vector<Result> run_checks(const Options& options, Progress& progress);

}  // namespace tenon::kit
