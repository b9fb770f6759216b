// SPDX-License-Identifier: Apache-2.0
// What all threads of a process share and a plugin must not change.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace tenon::kit {

struct StateChange {
  const char* aspect;  // the check that it fails: "process.signals"
  std::string expected, got, fix;
};

class ProcessState {
 public:
  static ProcessState now();

  // What differs from this state now. It is changed back; what was printed counts as seen.
  std::vector<StateChange> restore();

 private:
  struct sigaction handlers_[NSIG] {};
  std::string locale_, folder_;
  mode_t umask_ = 0;
  std::vector<std::string> environment_;
  std::vector<const char*> variables_;  // their addresses: setenv makes a new string
  off_t printed_ = 0;                   // bytes of the standard output

  void compare_signals(std::vector<StateChange>&);
  void compare_output(std::vector<StateChange>&);
  void compare_settings(std::vector<StateChange>&);
  void compare_environment(std::vector<StateChange>&);
};

std::string signal_name(int number);  // "SIGSEGV"

}  // namespace tenon::kit
