// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "../failures.hpp"
#include "device.hpp"

namespace simulated {
namespace {

// With SIMULATED_DELAY_US, every piece of work waits up to so long before it runs: streams that
// nothing orders then overtake one another.
void random_delay() {
  static const uint64_t longest = environment("SIMULATED_DELAY_US", 0);
  if (longest == 0) return;
  static std::mutex mutex;
  static auto* random = new std::mt19937_64(environment("SIMULATED_SEED", 1));
  uint64_t chosen;
  {
    std::lock_guard lock(mutex);
    chosen = (*random)() % (longest + 1);
  }
  std::this_thread::sleep_for(std::chrono::microseconds(chosen));
}

}  // namespace

bool Ticket::passed() const { return !stream || stream->passed(number); }

void Ticket::wait() const {
  if (stream) stream->wait(number);
}

Error Stream::submit(Work work) {
  if (std::shared_ptr<Capture> into = capture()) {
    std::lock_guard lock(into->mutex);
    if (into->invalidated) return error::STREAM_CAPTURE_INVALIDATED;
    std::lock_guard mine(mutex_);
    into->graph->nodes.push_back({std::move(work), capture_tail_});
    capture_tail_ = {into->graph->nodes.size() - 1};
    return error::SUCCESS;
  }
  if (!(flags & kNonBlocking)) device.order_with_default_stream(*this);
  push(std::move(work));
  return error::SUCCESS;
}

// The worker's stack is small: the C library keeps the stacks of threads that have ended, and one of
// the usual 8 MiB looks like a leak to a test that measures memory.
void Stream::start_worker() {
  constexpr size_t kStackBytes = 512 << 10;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto* self = new std::shared_ptr<Stream>(shared_from_this());
  const auto run = [](void* argument) -> void* {
    std::unique_ptr<std::shared_ptr<Stream>> stream(
        static_cast<std::shared_ptr<Stream>*>(argument));
    (*stream)->work();
    return nullptr;
  };
  pthread_t thread;
  if (pthread_create(&thread, &attributes, run, self)) std::abort();
  pthread_attr_destroy(&attributes);
}

Ticket Stream::push(Work work) {
  std::lock_guard lock(mutex_);
  if (!has_worker_) {
    has_worker_ = true;
    start_worker();
  }
  queue_.push_back(std::move(work));
  changed_.notify_all();
  return {shared_from_this(), ++submitted_};
}

Ticket Stream::tail() {
  std::lock_guard lock(mutex_);
  return {shared_from_this(), submitted_};
}

bool Stream::passed(uint64_t number) {
  std::lock_guard lock(mutex_);
  return completed_ >= number;
}

void Stream::wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return completed_ >= number; });
}

void Stream::finish() {
  std::lock_guard lock(mutex_);
  finishing_ = true;
  changed_.notify_all();
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return finishing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    // A lost device executes nothing more.
    if (!device.lost()) {
      random_delay();
      if (Error error = work()) device.lose(error);
    }
    work = nullptr;  // what it holds is released before it counts as done
    lock.lock();
    ++completed_;
    changed_.notify_all();
  }
}

std::shared_ptr<Capture> Stream::capture() {
  std::lock_guard lock(mutex_);
  return capture_;
}

void Stream::join_capture(std::shared_ptr<Capture> capture, const std::vector<size_t>& nodes) {
  {
    std::lock_guard lock(capture->mutex);
    if (std::find(capture->streams.begin(), capture->streams.end(), shared_from_this()) ==
        capture->streams.end())
      capture->streams.push_back(shared_from_this());
  }
  std::lock_guard lock(mutex_);
  capture_ = std::move(capture);
  for (size_t node : nodes)
    if (std::find(capture_tail_.begin(), capture_tail_.end(), node) == capture_tail_.end())
      capture_tail_.push_back(node);
}

void Stream::leave_capture() {
  std::lock_guard lock(mutex_);
  capture_ = nullptr;
  capture_tail_.clear();
}

std::vector<size_t> Stream::capture_tail() {
  std::lock_guard lock(mutex_);
  return capture_tail_;
}

// ---- events ----

struct Event::Mark {
  Ticket ticket;
  std::chrono::steady_clock::time_point time;  // when the ticket passed
  std::shared_ptr<Capture> capture;            // recorded into a graph, at these nodes
  std::vector<size_t> nodes;
};

Error Event::record(Stream& stream) {
  auto mark = std::make_shared<Mark>();
  if ((mark->capture = stream.capture())) {
    mark->nodes = stream.capture_tail();
  } else {
    if (!(stream.flags & Stream::kNonBlocking)) device.order_with_default_stream(stream);
    mark->ticket = stream.push([mark]() -> Error {
      mark->time = std::chrono::steady_clock::now();
      return error::SUCCESS;
    });
  }
  std::lock_guard lock(mutex_);
  mark_ = std::move(mark);
  return error::SUCCESS;
}

Error Event::make_wait(Stream& stream) {
  std::shared_ptr<Mark> mark;
  {
    std::lock_guard lock(mutex_);
    mark = mark_;
  }
  if (!mark) return error::SUCCESS;
  std::shared_ptr<Capture> into = stream.capture();
  if (mark->capture) {
    if (!mark->capture->origin) return error::CAPTURED_EVENT;  // that capture has ended
    if (into && into != mark->capture) return error::STREAM_CAPTURE_MERGE;
    if (stream.is_legacy) return error::STREAM_CAPTURE_IMPLICIT;
    stream.join_capture(mark->capture, mark->nodes);
    return error::SUCCESS;
  }
  if (into) {
    std::lock_guard lock(into->mutex);
    into->invalidated = true;
    return error::STREAM_CAPTURE_ISOLATION;
  }
  return stream.submit([ticket = mark->ticket]() -> Error {
    ticket.wait();
    return error::SUCCESS;
  });
}

Error Event::query() {
  std::lock_guard lock(mutex_);
  if (mark_ && mark_->capture) return error::CAPTURED_EVENT;
  return !mark_ || mark_->ticket.passed() ? error::SUCCESS : error::NOT_READY;
}

Error Event::sync() {
  Ticket ticket;
  {
    std::lock_guard lock(mutex_);
    if (mark_ && mark_->capture) return error::CAPTURED_EVENT;
    if (mark_) ticket = mark_->ticket;
  }
  ticket.wait();
  return error::SUCCESS;
}

Error Event::elapsed(Event& begin, Event& end, float* milliseconds) {
  if ((begin.flags | end.flags) & kDisableTiming) return error::INVALID_HANDLE;
  std::shared_ptr<Mark> first, last;
  {
    std::lock_guard lock(begin.mutex_);
    first = begin.mark_;
  }
  {
    std::lock_guard lock(end.mutex_);
    last = end.mark_;
  }
  if (!first || !last || first->capture || last->capture) return error::INVALID_HANDLE;
  if (!first->ticket.passed() || !last->ticket.passed()) return error::NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(last->time - first->time).count();
  return error::SUCCESS;
}

}  // namespace simulated
