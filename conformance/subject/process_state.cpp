// SPDX-License-Identifier: Apache-2.0
#include "subject/process_state.hpp"

#include <stdio_ext.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness/text.hpp"

extern char** environ;

namespace tenon::kit {
namespace {

constexpr size_t kMaxQuoted = 120;  // bytes of what was printed

std::string folder() {
  char path[PATH_MAX];
  return ::getcwd(path, sizeof path) ? path : "";
}

mode_t file_mask() {
  mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

std::string locale() {
  const char* name = std::setlocale(LC_ALL, nullptr);
  return name ? name : "";
}

std::string octal(mode_t mask) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "0%o", static_cast<unsigned>(mask));
  return digits;
}

std::string handler_text(const struct sigaction& action) {
  if (action.sa_handler == SIG_DFL) return "the default action";
  return action.sa_handler == SIG_IGN ? "ignored" : "a handler";
}

// Flags matter to handlers alone; the C library adds SA_RESTORER to what it sets.
bool is_same_handler(const struct sigaction& a, const struct sigaction& b) {
  constexpr int kRestorer = 0x04000000;
  if (a.sa_handler != b.sa_handler) return false;
  bool is_function = a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN;
  return !is_function || ((a.sa_flags ^ b.sa_flags) & ~kRestorer) == 0;
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

}  // namespace

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name ? text("SIG", name) : text("signal ", number);
}

ProcessState ProcessState::now() {
  ProcessState state;
  for (int number = 1; number < NSIG; ++number)
    ::sigaction(number, nullptr, &state.handlers_[number]);
  state.locale_ = locale();
  state.folder_ = folder();
  state.umask_ = file_mask();
  for (char** at = environ; at && *at; ++at) {
    state.environment_.push_back(*at);
    state.variables_.push_back(*at);
  }
  std::fflush(stdout);
  struct stat file {};
  if (::fstat(STDOUT_FILENO, &file) == 0) state.printed_ = file.st_size;
  return state;
}

std::vector<StateChange> ProcessState::restore() {
  std::vector<StateChange> changes;
  compare_signals(changes);
  compare_output(changes);
  compare_settings(changes);
  compare_environment(changes);
  return changes;
}

void ProcessState::compare_signals(std::vector<StateChange>& changes) {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    const struct sigaction& before = handlers_[number];
    if (::sigaction(number, nullptr, &action) != 0 || is_same_handler(action, before)) continue;
    changes.push_back({"process.signals",
                       text("what ", signal_name(number), " does stays ", handler_text(before)),
                       before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN
                           ? handler_text(action)
                           : "another, or other flags: " + handler_text(action),
                       "install no handlers: they belong to the program; restore what a library "
                       "below the plugin installs"});
    ::sigaction(number, &before, nullptr);
  }
}

// What stands in the buffer of stdout is written, so that it is in the file.
void ProcessState::compare_output(std::vector<StateChange>& changes) {
  if (::__fpending(stdout) > 0) std::fflush(stdout);
  struct stat file {};
  if (::fstat(STDOUT_FILENO, &file) != 0 || file.st_size <= printed_) return;
  std::string printed(std::min<size_t>(static_cast<size_t>(file.st_size - printed_), kMaxQuoted),
                      '\0');
  ssize_t got = ::pread(STDOUT_FILENO, printed.data(), printed.size(), printed_);
  printed.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (!printed.empty() && printed.back() == '\n') printed.pop_back();
  changes.push_back({"process.output", "nothing is printed to the standard output",
                     text(file.st_size - printed_, " bytes: ", printed),
                     "the standard output belongs to the program: report failures with host->fail, "
                     "and print what helps with debugging to stderr, when a variable of the "
                     "environment asks for it"});
  printed_ = file.st_size;
}

void ProcessState::compare_settings(std::vector<StateChange>& changes) {
  if (std::string found = locale(); found != locale_) {
    changes.push_back({"process.locale", "the locale stays " + locale_, found,
                       "do not call setlocale: use newlocale and the functions that take one"});
    std::setlocale(LC_ALL, locale_.c_str());
  }
  if (std::string found = folder(); found != folder_) {
    changes.push_back({"process.folder", "the current folder stays " + folder_, found,
                       "do not call chdir: use absolute paths, or openat"});
    if (::chdir(folder_.c_str()) != 0) folder_ = found;
  }
  if (mode_t found = file_mask(); found != umask_) {
    changes.push_back({"process.umask", "the umask stays " + octal(umask_), octal(found),
                       "do not call umask: use fchmod for the files that the plugin makes"});
    ::umask(umask_);
  }
}

void ProcessState::compare_environment(std::vector<StateChange>& changes) {
  size_t count = 0;
  bool is_same = true;
  for (char** at = environ; at && *at; ++at, ++count)
    is_same &= count < variables_.size() && *at == variables_[count];
  if (is_same && count == variables_.size()) return;
  std::vector<std::string> found;
  for (char** at = environ; at && *at; ++at) found.push_back(*at);
  auto holds = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  auto named = [](const std::vector<std::string>& all, const std::string& name) {
    auto at = std::find_if(all.begin(), all.end(),
                           [&](const std::string& one) { return name_of(one) == name; });
    return at == all.end() ? "no " + name : *at;
  };
  std::string name;
  for (const std::string& variable : found)
    if (!holds(environment_, variable)) name = name_of(variable);
  for (const std::string& variable : environment_)
    if (!holds(found, variable)) name = name_of(variable);
  if (!name.empty())
    changes.push_back({"process.environment",
                       "the environment stays, with " + named(environment_, name),
                       named(found, name),
                       "do not call setenv, putenv or unsetenv: other threads read the environment "
                       "at the same time"});
  for (const std::string& variable : found)
    if (!holds(environment_, variable)) ::unsetenv(name_of(variable).c_str());
  for (const std::string& variable : environment_)
    if (!holds(found, variable))
      ::setenv(name_of(variable).c_str(), variable.substr(variable.find('=') + 1).c_str(), 1);
  environment_.clear();
  variables_.clear();
  for (char** at = environ; at && *at; ++at) {
    environment_.push_back(*at);
    variables_.push_back(*at);
  }
}

}  // namespace tenon::kit
