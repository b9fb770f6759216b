// SPDX-License-Identifier: Apache-2.0
#include "service/connection.hpp"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <tenon/tensor.hpp>

namespace tenon::isolated {
namespace {

std::atomic<bool> forked{false};

// "90", "1.5"
std::string seconds_text(uint64_t ns) {
  std::string text = std::to_string(static_cast<double>(ns) / 1e9);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

bool is_forked_child() { return forked.load(std::memory_order_relaxed); }
void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  (void)registered;
}

std::string Connection::origin() const {
  return name_ + " (isolated process " + std::to_string(process_->id()) + ")";
}

bool Connection::is_usable() const { return !is_forked_child() && !process_->has_ended(); }

tenon_status Connection::fail_gone(tenon_err* err) const {
  if (is_forked_child())
    return fail(err, TENON_UNAVAILABLE,
                origin() +
                    " serves the process that loaded it and not its forked children; start them "
                    "with spawn, or load it there");
  return fail(err, TENON_UNAVAILABLE,
              origin() + " " + process_->how_it_ended() +
                  "; its tensors are lost; let go of them, unload it and load it again");
}

uint32_t Connection::take_lane() {
  std::unique_lock lock(mutex_);
  lane_is_free_.wait(lock, [this] { return free_lanes_ != 0; });
  const auto index = static_cast<uint32_t>(std::countr_zero(free_lanes_));
  free_lanes_ &= ~(1u << index);
  return index;
}

void Connection::give_lane(uint32_t index) {
  {
    std::lock_guard lock(mutex_);
    free_lanes_ |= 1u << index;
  }
  lane_is_free_.notify_one();
}

// A forked child has no shared memory and perhaps a mutex that stays locked: it touches neither.
Request::Request(Connection& connection)
    : connection_(connection),
      index_(is_forked_child() ? kLanes : connection.take_lane()),
      lane_(connection.process().shared().lanes[std::min(index_, kLanes - 1)]),
      message_(lane_.message, index_ == kLanes ? 0 : kMessageBytes) {}

Request::~Request() {
  if (index_ != kLanes) connection_.give_lane(index_);
}

tenon_status Request::post(Command command, tenon_err* err) {
  if (!connection_.is_usable()) return connection_.fail_gone(err);
  if (!message_.fits())
    return fail(err, TENON_UNSUPPORTED,
                connection_.origin() + ": the arguments of this call take more than the " +
                    std::to_string(kMessageBytes >> 10) +
                    " KiB of a message; pass fewer tensors or shorter lists at once");
  lane_.command = command;
  lane_.message_bytes = message_.bytes();
  message_ = Writer(lane_.message, kMessageBytes);
  uint32_t& number = connection_.numbers_[index_];
  if (++number == kGone) number = 1;
  change(lane_.asked, lane_.process_sleeps, number);
  return TENON_OK;
}

tenon_status Request::wait(tenon_err* err) {
  Process& process = connection_.process();
  const uint64_t deadline_ns = connection_.deadline_ns_;
  const uint32_t number = connection_.numbers_[index_];
  const auto start = std::chrono::steady_clock::now();
  for (bool is_first = true;; is_first = false) {
    const uint32_t answered = lane_.answered.load(std::memory_order_acquire);
    if (answered == number) break;
    if (process.has_ended()) return connection_.fail_gone(err);
    // Counted from the start: a process gone wild may change the word again and again.
    const auto waited = is_first ? 0 : (std::chrono::steady_clock::now() - start).count();
    if (static_cast<uint64_t>(waited) < deadline_ns) {
      wait_for_change(lane_.answered, lane_.program_sleeps, answered, patience_of(index_),
                      deadline_ns - static_cast<uint64_t>(waited));
      continue;
    }
    process.end("did not answer within " + seconds_text(deadline_ns) + " s and was ended");
    // A process that hangs in a driver ends when the operating system lets it.
    constexpr uint64_t kSecond = 1'000'000'000;
    process.wait_gone(kSecond);
  }
  const tenon_status status = lane_.status;
  answer_bytes_ = std::min<uint32_t>(lane_.message_bytes, kMessageBytes);
  if (status == TENON_OK) return TENON_OK;
  if (status < TENON_OK || status > TENON_TYPE_MISMATCH) return fail_answer(err);
  return fail(err, status, answer().get_text());
}

tenon_status Request::fail_answer(tenon_err* err) const {
  return fail(
      err, TENON_INTERNAL,
      connection_.origin() + " gave an answer that makes no sense; its memory may be damaged");
}

}  // namespace tenon::isolated
