// SPDX-License-Identifier: Apache-2.0
// Runs one check in a process of its own. Whatever happens there - a crash, a hang, a call of
// exit() - is a result.
#pragma once

#include <cstdio>
#include <functional>
#include <set>
#include <string>

#include "harness/check.hpp"
#include "harness/result.hpp"

namespace tenon::kit {

// A process for checks. Kept from one check to the next, it runs them one after the other, on
// devices that it opens once: for a plugin that is slow to open. It ends with a check that crashes
// or hangs.
class ChildProcess {
 public:
  ChildProcess() = default;
  ~ChildProcess() { end(); }
  ChildProcess(const ChildProcess&) = delete;

  void end();  // lets it close its devices first

 private:
  friend Result run_in_child(const Check&, const std::string&, double, std::set<std::string>,
                             const std::function<void(const std::string&)>&, ChildProcess*);
  // `only`: it runs this check and ends; NULL: those that it is told of.
  void start(const std::string& path, double limit, const Check* only,
             const std::set<std::string>& skipped);
  void tell(const Check&, const std::set<std::string>& skipped);
  int stop(bool by_force);  // how it ended, as waitpid says it

  int pid_ = -1, commands_ = -1, messages_ = -1;
  FILE* output_ = nullptr;  // what the plugin prints
  FILE* errors_ = nullptr;
};

// `on_step` hears what the check is doing. Checks about subjects go on behind one that killed the
// process, in a new one. `tainted`: subjects to leave out. `kept`: the process
// to run it in; NULL: one of its own.
Result run_in_child(const Check& check, const std::string& path, double time_limit,
                    std::set<std::string> tainted,
                    const std::function<void(const std::string&)>& on_step,
                    ChildProcess* kept = nullptr);

}  // namespace tenon::kit
