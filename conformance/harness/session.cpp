// SPDX-License-Identifier: Apache-2.0
#include "harness/session.hpp"

#include <unistd.h>

#include "harness/message.hpp"

namespace tenon::kit {
namespace {

constexpr int kMaxFailures = 12;  // of one check that are told; the rest would say the same

}  // namespace

void Session::send(char kind, std::initializer_list<std::string> fields) {
  std::string line = encode(kind, fields);
  const char* at = line.data();
  for (size_t left = line.size(); left > 0;) {
    ssize_t written = ::write(pipe_, at, left);
    if (written <= 0) return;  // the parent is gone
    at += written;
    left -= static_cast<size_t>(written);
  }
}

void Session::step(const std::string& what) { send(kStepMessage, {what}); }

bool Session::begin(const std::string& subject) {
  if (skipped_.count(subject)) return false;
  subject_ = subject;
  send(kSubjectMessage, {subject});
  return true;
}

void Session::fail(const std::string& expected, const std::string& got, const std::string& fix) {
  failed_.insert(subject_);
  if (++failures_ <= kMaxFailures)
    send(kFailureMessage, {subject_, expected, got, fix.empty() ? check_.hint : fix});
  else
    send(kFailureMessage, {subject_, "", "", ""});
}

void Session::violate(const std::string& id, const std::string& expected, const std::string& got,
                      const std::string& fix) {
  send(kViolationMessage, {id, expected, got, fix});
}

void Session::absent(const std::string& why) {
  send(kAbsentMessage, {why});
  throw Stop{};
}

void Session::opened(double seconds) { send(kOpenMessage, {text(seconds)}); }

void Session::figure(const std::string& name, double value, const std::string& unit) {
  send(kFigureMessage, {name, text(value), unit});
}

void Session::note(const std::string& text) { send(kNoteMessage, {text}); }

void Session::warn(const std::string& text) { send(kWarningMessage, {text}); }

void Session::done() { send(kDoneMessage, {}); }

}  // namespace tenon::kit
