// SPDX-License-Identifier: Apache-2.0
// What a running check talks to: it lives in the check's own process and sends every word to the
// parent at once, so that nothing is lost if the next call kills the process.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "harness/check.hpp"
#include "harness/text.hpp"

namespace tenon::kit {

inline constexpr double kSlow = 0.5;  // seconds, for a function that each program calls once

// Thrown to leave a check; everything was said before.
struct Stop {};

class Session {
 public:
  Session(const Check& check, std::string path, double time_limit, std::set<std::string> skipped,
          int pipe)
      : check_(check),
        path_(std::move(path)),
        time_limit_(time_limit),
        skipped_(std::move(skipped)),
        pipe_(pipe) {}

  const Check& check() const { return check_; }
  const std::string& path() const { return path_; }  // of the plugin
  double time_limit() const { return time_limit_; }  // seconds, for each step

  // What is being done now; names the culprit if the process dies here.
  void step(const std::string& what);

  // From here on the check is about `subject`, an operator. False: it failed already, leave it out.
  bool begin(const std::string& subject);
  const std::string& subject() const { return subject_; }
  bool is_skipped(const std::string& subject) const { return skipped_.count(subject) != 0; }
  bool subject_failed() const { return failed_.count(subject_) != 0; }

  void fail(const std::string& expected, const std::string& got, const std::string& fix = "");
  bool expect(bool holds, const std::string& expected, const std::string& got,
              const std::string& fix = "") {
    if (!holds) fail(expected, got, fix);
    return holds;
  }
  // The check cannot go on without it.
  void require(bool holds, const std::string& expected, const std::string& got,
               const std::string& fix = "") {
    if (!expect(holds, expected, got, fix)) throw Stop{};
  }
  // A call changed the process. Fails the check of that name, not this one.
  void violate(const std::string& id, const std::string& expected, const std::string& got,
               const std::string& fix);
  [[noreturn]] void absent(const std::string& why);

  // A function that each program calls once: query, enumerate, open, close. Slow ones are called
  // less often.
  void opened(double seconds);
  void figure(const std::string& name, double value, const std::string& unit);
  void note(const std::string& text);
  void warn(const std::string& text);  // fails nothing
  void done();

  int failures() const { return failures_; }

 private:
  void send(char kind, std::initializer_list<std::string> fields);

  const Check& check_;
  std::string path_;
  double time_limit_;
  std::set<std::string> skipped_, failed_;
  int pipe_;
  std::string subject_;
  int failures_ = 0;
};

}  // namespace tenon::kit
