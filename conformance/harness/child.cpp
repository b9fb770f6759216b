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
#include "subject/device.hpp"
#include "subject/watch.hpp"

namespace tenon::kit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxRestarts = 16;           // a plugin that dies everywhere need not do so 300 times
constexpr int kMaxSteps = 60;              // time limits that a whole check may take
constexpr size_t kMaxOutputBytes = 2000;   // of what the plugin printed
constexpr int kMaxEndMilliseconds = 5000;  // for closing devices, at the end
constexpr int kUncaught = 112;             // exit code of a check that a C++ exception ended

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One check, with what it ends by told.
void perform(const Check& check, Session& session) {
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
}

// The child's whole life. Ends with _exit: no destructor of a plugin runs behind the last check.
void settle_in(int output, int errors) {
  ::setpgid(0, 0);  // so that helpers of a check that hangs die with it
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
}

[[noreturn]] void live(const Check& check, const std::string& path, double limit,
                       const std::set<std::string>& skipped, int pipe, int output, int errors) {
  settle_in(output, errors);
  Session session(check, path, limit, skipped, pipe);
  start_watching(session);
  perform(check, session);
  std::fflush(nullptr);
  ::_exit(0);
}

// One line from the parent; empty at its end.
std::string read_line(int pipe) {
  std::string line;
  for (char c; ::read(pipe, &c, 1) == 1; line += c)
    if (c == '\n') return line;
  return "";
}

// The life of a process that runs the checks it is told of.
[[noreturn]] void live_long(const std::string& path, double limit, int commands, int pipe,
                            int output, int errors) {
  settle_in(output, errors);
  share_devices();
  const Check* last = nullptr;
  for (std::string line; !(line = read_line(commands)).empty();) {
    Message command = decode(line);
    for (const Check& check : all_checks())
      if (command.field(0) == check.id) last = &check;
    std::set<std::string> skipped(command.fields.begin() + 1, command.fields.end());
    Session session(*last, path, limit, std::move(skipped), pipe);
    start_watching(session);
    perform(*last, session);
    stop_watching();
  }
  close_shared_devices();
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
      case kWarningMessage:
        result_.warnings.push_back(message.field(0));
        break;
      case kOpenMessage:
        result_.open_seconds =
            std::max(result_.open_seconds, std::strtod(message.field(0).c_str(), nullptr));
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
    // A thread or helper of the plugin may hold the pipe open: the kit does not wait for it.
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

void ChildProcess::start(const std::string& path, double limit, const Check* only,
                         const std::set<std::string>& skipped) {
  int to_parent[2], to_child[2];
  if (::pipe2(to_parent, O_CLOEXEC) != 0 || ::pipe2(to_child, O_CLOEXEC) != 0) std::abort();
  output_ = std::tmpfile();
  errors_ = std::tmpfile();
  if (!output_ || !errors_) std::abort();
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(to_parent[0]);
    ::close(to_child[1]);
    int output = ::fileno(output_), errors = ::fileno(errors_);
    if (only) live(*only, path, limit, skipped, to_parent[1], output, errors);
    live_long(path, limit, to_child[0], to_parent[1], output, errors);
  }
  ::close(to_parent[1]);
  ::close(to_child[0]);
  messages_ = to_parent[0];
  commands_ = to_child[1];
}

void ChildProcess::tell(const Check& check, const std::set<std::string>& skipped) {
  std::string command = text("C\t", check.id);
  for (const std::string& subject : skipped) command += "\t" + subject;
  command += "\n";
  auto before = ::signal(SIGPIPE, SIG_IGN);  // it may have ended; then its messages end, too
  if (::write(commands_, command.data(), command.size()) < 0) std::clearerr(output_);
  ::signal(SIGPIPE, before);
}

int ChildProcess::stop(bool by_force) {
  int status = 0;
  if (pid_ > 0) {
    if (by_force) ::kill(-pid_, SIGKILL);
    if (by_force) ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
    ::kill(-pid_, SIGKILL);
  }
  pid_ = -1;
  for (int pipe : {commands_, messages_})
    if (pipe >= 0) ::close(pipe);
  commands_ = messages_ = -1;
  return status;
}

void ChildProcess::end() {
  if (pid_ > 0) {
    ::close(std::exchange(commands_, -1));  // it closes its devices, then its messages end
    pollfd waiting{messages_, POLLIN, 0};
    ::poll(&waiting, 1, kMaxEndMilliseconds);
    stop(true);
  }
  for (FILE** file : {&output_, &errors_})
    if (*file) std::fclose(std::exchange(*file, nullptr));
}

Result run_in_child(const Check& check, const std::string& path, double limit,
                    std::set<std::string> skipped,
                    const std::function<void(const std::string&)>& on_step, ChildProcess* kept) {
  Result result;
  result.id = check.id;
  const auto start = Clock::now();
  for (int restart = 0; restart <= kMaxRestarts; ++restart) {
    ChildProcess own;
    ChildProcess& process = kept ? *kept : own;
    if (process.pid_ < 0) process.start(path, limit, kept ? nullptr : &check, skipped);
    if (kept) process.tell(check, skipped);
    Listener listener(result, on_step);
    bool in_time = process.pid_ > 0 && listen(process.messages_, limit, listener);
    // A child that said everything may still be in a plugin's destructor: it has had its time.
    bool goes_on = kept && listener.done;
    int status = goes_on ? 0 : process.stop(!in_time || listener.done);
    Failure failure = judge(status, in_time, limit, listener);
    if (!failure.got.empty()) {
      result.outcome = Outcome::kFailed;
      result.failures.push_back(failure);
    }
    for (FILE* file : {process.output_, process.errors_})
      if (std::string printed = tail(::fileno(file)); result.output.empty())
        result.output = printed;
    if (!goes_on) process.end();
    if (failure.got.empty() || listener.subject.empty()) break;
    // The same again, without the subject that killed it; those before it have been told.
    skipped.insert(listener.subject);
    for (const Failure& told : result.failures) skipped.insert(told.subject);
  }
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace tenon::kit
