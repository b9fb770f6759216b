// SPDX-License-Identifier: Apache-2.0
// What a stream is made of: an in-order queue with a worker thread, and tickets, which are positions
// in it. Everything that waits (events, syncs, memory given back on a stream) waits for a ticket.
#pragma once

#include <tenon/abi.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace reference {

class Profile;

// How work ended; a call that waits for the stream reports the text.
struct Result {
  tenon_status status = TENON_OK;
  std::string text;
};
using Work = std::function<Result()>;

// One piece of work, and what a profile says about it. Control work (signals, memory given back) is
// in no profile.
struct Task {
  static constexpr uint32_t kControl = UINT32_MAX;
  uint32_t kind = kControl;  // TENON_PROFILE_* or kControl
  const char* name = "";
  uint64_t bytes = 0;
  Work work;
};

class Queue {
 public:
  explicit Queue(Profile* profile, tenon_stream stream);
  ~Queue() { stop(); }

  uint64_t submit(Task task);  // returns its ticket number
  uint64_t last() const;
  bool passed(uint64_t number) const;
  void wait(uint64_t number) const;
  Result take_failure();  // the first since the last call
  void stop();            // finishes what is queued

 private:
  void run();

  Profile* profile_;
  tenon_stream stream_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Task> tasks_;
  uint64_t submitted_ = 0, completed_ = 0;
  bool stopping_ = false;
  Result failure_;
  std::thread thread_;
};

// A place in a queue; an empty one has passed. Outlives the stream that it came from.
struct Ticket {
  std::shared_ptr<Queue> queue;
  uint64_t number = 0;

  bool passed() const { return !queue || queue->passed(number); }
  void wait() const {
    if (queue) queue->wait(number);
  }
};

// Worker threads alive in the process; quiesce waits until there are none.
int live_workers();

}  // namespace reference
