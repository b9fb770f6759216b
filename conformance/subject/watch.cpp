// SPDX-License-Identifier: Apache-2.0
#include "subject/watch.hpp"

#include <pthread.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

#include "subject/float_control.hpp"
#include "subject/plugin.hpp"
#include "subject/process_state.hpp"

namespace tenon::kit {
namespace {

// The state of the whole process takes some 70 system calls to read. It is compared after each of
// the first calls of a function, and after one in so many later on.
constexpr uint32_t kAlways = 64, kOneIn = 64;

Session* session = nullptr;
std::atomic<int> calls_in_progress{0};
std::mutex mutex;  // guards all below
ProcessState right;
std::set<std::string> told;

void tell(const char* aspect, const WatchedFunction& function, const std::string& expected,
          const std::string& got, const std::string& fix) {
  std::lock_guard lock(mutex);
  if (!session || !told.insert(std::string(aspect) + " " + function.name).second) return;
  session->violate(aspect, text(function.name, ": ", expected), got, fix);
}

std::string names_of(const sigset_t& signals) {
  std::string names;
  for (int number = 1; number < NSIG; ++number)
    if (::sigismember(&signals, number) == 1)
      names += (names.empty() ? "" : ", ") + signal_name(number);
  return names.empty() ? "none" : names;
}

bool are_equal(const sigset_t& a, const sigset_t& b) {
  for (int number = 1; number < NSIG; ++number)
    if (::sigismember(&a, number) != ::sigismember(&b, number)) return false;
  return true;
}

// All that one thread can change for the others.
void compare_process(const WatchedFunction& function, bool is_sparse) {
  std::vector<StateChange> changes;
  {
    std::lock_guard lock(mutex);
    changes = right.restore();
  }
  std::string when = is_sparse ? " (or a call shortly before it)" : "";
  for (const StateChange& change : changes)
    tell(change.aspect, function, change.expected + when, change.got, change.fix);
}

}  // namespace

void start_watching(Session& watched) {
  std::lock_guard lock(mutex);
  right = ProcessState::now();
  told.clear();
  session = &watched;
}

void stop_watching() {
  std::lock_guard lock(mutex);
  session = nullptr;
}

Watch::Watch(WatchedFunction& function) : function_(function), is_active_(session != nullptr) {
  if (!is_active_) return;
  ++calls_in_progress;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked_);
  vector_control_ = float_control();
  x87_control_ = x87_control();
}

void Watch::compare_thread() {
  uint32_t vector_now = float_control();
  uint16_t x87_now = x87_control();
  if (vector_now != vector_control_ || x87_now != x87_control_) {
    set_float_control(vector_control_);
    set_x87_control(x87_control_);
    tell(
        "process.floating_point", function_,
        "rounding mode, flush-to-zero, denormals-are-zero and exception masks stay as they were, " +
            describe_float_control(vector_control_, x87_control_),
        describe_float_control(vector_now, x87_now),
        "save the control register, and restore it before the function returns; do not link with "
        "-ffast-math, which changes it when the library is loaded");
  }
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  if (!are_equal(blocked, blocked_)) {
    ::pthread_sigmask(SIG_SETMASK, &blocked_, nullptr);
    tell("process.signals", function_,
         "the signals that are blocked stay as they were, " + names_of(blocked_), names_of(blocked),
         "restore the mask with pthread_sigmask before the function returns");
  }
}

Watch::~Watch() {
  if (!is_active_) return;
  compare_thread();
  uint32_t number = function_.calls.fetch_add(1, std::memory_order_relaxed);
  bool is_due = number < kAlways || number % kOneIn == 0 || ::__fpending(stdout) > 0;
  // What another thread changes for a moment, as system() does, is no violation of this call.
  bool is_alone = calls_in_progress.load() == 1;
  if (is_due && is_alone) compare_process(function_, number >= kAlways);
  --calls_in_progress;
}

tenon_status Watch::status(tenon_status returned) {
  if (is_active_ && (returned < TENON_OK || returned > TENON_TYPE_MISMATCH))
    tell("process.status", function_,
         text("a code from ", int{TENON_OK}, " to ", int{TENON_TYPE_MISMATCH}), text(returned),
         "return a TENON_ code of tenon/abi.h section 2; the driver's own number is an argument of "
         "host->fail");
  return returned;
}

}  // namespace tenon::kit
