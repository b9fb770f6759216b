// SPDX-License-Identifier: Apache-2.0
#include "harness/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "harness/message.hpp"
#include "harness/session.hpp"
#include "subject/watch.hpp"

namespace tenon::kit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxRestarts = 16;          // a plugin that dies everywhere need not do so 300 times
constexpr int kMaxSteps = 60;             // time limits that a whole check may take
constexpr size_t kMaxOutputBytes = 2000;  // of what the plugin printed
constexpr int kUncaught = 112;            // exit code of a check that a C++ exception ended

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The child's whole life. Ends with _exit: no destructor of a plugin runs behind the last check.
[[noreturn]] void live(const Check& check, const std::string& path, double limit,
                       const std::set<std::string>& skipped, int pipe, int output, int errors) {
  ::setpgid(0, 0);  // so that helpers of a check that hangs die with it
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  Session session(check, path, limit, skipped, pipe);
  start_watching(session);
  try {
    check.run(session);
    session.done();
  } catch (const Stop&) {
    session.done();
  } catch (const std::exception& error) {
    // Of the kit's own making: none of a plugin's may get here, see tenon/abi.h, ground rules.
    session.fail("no C++ exception crosses the ABI", text("an exception: ", error.what()),
                 "catch it in the plugin and report it with host->fail");
    session.done();
  } catch (...) {
    std::fflush(nullptr);
    ::_exit(kUncaught);
  }
  std::fflush(nullptr);
  ::_exit(0);
}

// Gathers what a child says.
class Listener {
 public:
  Listener(Result& result, const std::function<void(const std::string&)>& on_step)
      : result_(result), on_step_(on_step) {}

  void hear(const char* bytes, size_t count) {
    pending_.append(bytes, count);
    for (size_t end; (end = pending_.find('\n')) != std::string::npos;) {
      take(decode(std::string_view(pending_).substr(0, end)));
      pending_.erase(0, end + 1);
    }
  }

  bool done = false;
  int steps = 0;
  std::string step, subject;

 private:
  void take(const Message& message) {
    switch (message.kind) {
      case kStepMessage:
        step = message.field(0);
        ++steps;
        on_step_(step);
        break;
      case kSubjectMessage:
        subject = message.field(0);
        break;
      case kFailureMessage:
        add({message.field(0), message.field(1), message.field(2), message.field(3)});
        break;
      case kAbsentMessage:
        if (result_.outcome == Outcome::kPassed) result_.outcome = Outcome::kAbsent;
        result_.why = message.field(0);
        break;
      case kFigureMessage:
        result_.figures.push_back(
            {message.field(0), message.field(2), std::strtod(message.field(1).c_str(), nullptr)});
        break;
      case kNoteMessage:
        result_.notes.push_back(message.field(0));
        break;
      case kViolationMessage:
        result_.violations.push_back(
            {message.field(0), {"", message.field(1), message.field(2), message.field(3)}});
        break;
      case kDoneMessage:
        done = true;
        break;
    }
  }

  void add(Failure failure) {
    result_.outcome = Outcome::kFailed;
    for (Failure& told : result_.failures)
      if (told.subject == failure.subject && told.expected == failure.expected &&
          told.got == failure.got) {
        ++told.count;
        return;
      }
    result_.failures.push_back(std::move(failure));
  }

  Result& result_;
  const std::function<void(const std::string&)>& on_step_;
  std::string pending_;
};

// The end of a file that the plugin printed to.
std::string tail(int file) {
  off_t size = ::lseek(file, 0, SEEK_END);
  if (size <= 0) return "";
  size_t bytes = std::min(static_cast<size_t>(size), kMaxOutputBytes);
  std::string text(bytes, '\0');
  ssize_t got = ::pread(file, text.data(), bytes, size - static_cast<off_t>(bytes));
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Listens until the pipe closes, or nothing new was begun for `limit` seconds: then false.
bool listen(int pipe, double limit, Listener& listener) {
  const auto start = Clock::now();
  auto step_start = start;
  for (int steps = 0;;) {
    if (listener.steps != steps) {
      steps = listener.steps;
      step_start = Clock::now();
    }
    double left = limit - seconds_since(step_start);
    if (left <= 0 || seconds_since(start) > kMaxSteps * limit) return false;
    pollfd waiting{pipe, POLLIN, 0};
    int ready = ::poll(&waiting, 1, static_cast<int>(left * 1000) + 1);
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    char buffer[4096];
    ssize_t got = ::read(pipe, buffer, sizeof buffer);
    if (got <= 0) return true;
    listener.hear(buffer, static_cast<size_t>(got));
    // A thread or helper of the plugin may hold the pipe open: nobody waits for it.
    if (listener.done) return true;
  }
}

// How the process ended; an empty `got` if as it should.
Failure judge(int status, bool in_time, double limit, const Listener& listener) {
  Failure failure{listener.subject, "the check comes to its end", "", "", Reason::kCrash};
  std::string where = listener.step.empty() ? "" : " during: " + listener.step;
  if (listener.done) return failure;
  if (!in_time) {
    failure.reason = Reason::kHang;
    failure.got = text("no end after ", limit, " s", where);
    failure.fix = "something waits for what never happens; a debugger shows where";
  } else if (WIFSIGNALED(status)) {
    failure.got = text("the process died of signal ", WTERMSIG(status), " (",
                       strsignal(WTERMSIG(status)), ")", where);
    failure.fix = "report failures with host->fail and a status; never abort";
  } else if (WEXITSTATUS(status) == kUncaught) {
    failure.got = "an exception of a foreign type" + where;
    failure.fix = "no C++ exception may cross the ABI: catch it in the plugin";
  } else {
    failure.reason = Reason::kExit;
    failure.got = text("the process ended by exit(", WEXITSTATUS(status), ")", where);
    failure.fix = "a plugin must not end the process: return a status";
  }
  return failure;
}

}  // namespace

Result run_in_child(const Check& check, const std::string& path, double limit,
                    std::set<std::string> skipped,
                    const std::function<void(const std::string&)>& on_step) {
  Result result;
  result.id = check.id;
  const auto start = Clock::now();
  for (int restart = 0; restart <= kMaxRestarts; ++restart) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    FILE* output = std::tmpfile();
    FILE* errors = std::tmpfile();
    if (!output || !errors) std::abort();
    std::fflush(nullptr);
    pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      live(check, path, limit, skipped, ends[1], ::fileno(output), ::fileno(errors));
    }
    ::close(ends[1]);
    Listener listener(result, on_step);
    bool in_time = child > 0 && listen(ends[0], limit, listener);
    ::close(ends[0]);
    // A child that said everything may still be in a plugin's destructor: it has had its time.
    int status = 0;
    if (!in_time || listener.done) ::kill(-child, SIGKILL);
    if (!in_time || listener.done) ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    ::kill(-child, SIGKILL);
    Failure failure = judge(status, in_time, limit, listener);
    if (!failure.got.empty()) {
      result.outcome = Outcome::kFailed;
      result.failures.push_back(failure);
    }
    for (int file : {::fileno(output), ::fileno(errors)})
      if (std::string printed = tail(file); result.output.empty()) result.output = printed;
    std::fclose(output);
    std::fclose(errors);
    if (failure.got.empty() || listener.subject.empty()) break;
    // The same again, without the subject that killed it; those before it have been told.
    skipped.insert(listener.subject);
    for (const Failure& told : result.failures) skipped.insert(told.subject);
  }
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace tenon::kit
