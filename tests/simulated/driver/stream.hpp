// SPDX-License-Identifier: Apache-2.0
// Streams: in-order queues, each with a worker thread, so that work which nothing orders runs in
// any order. A ticket is a position in a queue; events, waits and frees in stream order hold
// tickets.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "errors.hpp"
#include "graph.hpp"

namespace simulated {

class Device;
class Stream;

struct Ticket {
  std::shared_ptr<Stream> stream;  // none: it has passed
  uint64_t number = 0;

  bool passed() const;
  void wait() const;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  static constexpr unsigned kNonBlocking = 1;

  Stream(Device& device, unsigned flags, int priority, bool legacy)
      : device(device), flags(flags), priority(priority), is_legacy(legacy) {}

  Device& device;
  const unsigned flags;
  const int priority;
  const bool is_legacy;  // the default stream, which waits for the blocking ones and they for it

  // Queues the work, or records it as a node of the graph that the stream is captured into.
  Error submit(Work work);
  // The position behind everything queued so far. Not while capturing.
  Ticket tail();
  Ticket push(Work work);  // queues it, whatever is captured
  bool passed(uint64_t number);
  void wait(uint64_t number);
  void finish();  // the worker ends when the queue is empty

  // The capture that the stream is part of, and the nodes that its next node depends on.
  std::shared_ptr<Capture> capture();
  void join_capture(std::shared_ptr<Capture> capture, const std::vector<size_t>& nodes);
  void leave_capture();
  std::vector<size_t> capture_tail();

 private:
  void work();
  void start_worker();  // with the lock held

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  uint64_t submitted_ = 0, completed_ = 0;
  bool has_worker_ = false, finishing_ = false;
  std::shared_ptr<Capture> capture_;
  std::vector<size_t> capture_tail_;
};

class Event {
 public:
  static constexpr unsigned kDisableTiming = 2;
  Event(Device& device, unsigned flags) : device(device), flags(flags) {}

  Device& device;
  const unsigned flags;

  Error record(Stream& stream);
  Error make_wait(Stream& stream);
  Error query();
  Error sync();
  static Error elapsed(Event& begin, Event& end, float* milliseconds);

 private:
  struct Mark;  // one recording
  std::mutex mutex_;
  std::shared_ptr<Mark> mark_;
};

}  // namespace simulated
