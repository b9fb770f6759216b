// SPDX-License-Identifier: Apache-2.0
// Buffers of records on their way to the program, on a thread of the library, as late as SIMULATED_DELAY_US says.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "../failures.hpp"

namespace simulated {

class Delivery {
 public:
  void send(std::function<void()> buffer) {
    const std::lock_guard lock(mutex_);
    if (!started_) std::thread([this] { loop(); }).detach();
    started_ = true;
    queue_.push_back(std::move(buffer));
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  }

 private:
  void loop() {
    const uint64_t delay = environment("SIMULATED_DELAY_US", 0);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !queue_.empty(); });
      const std::function<void()> buffer = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      buffer();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool started_ = false, busy_ = false;
};

// The clock of records is none that the program has.
constexpr uint64_t kTracerClock = 7'000'000'000'000;

inline uint64_t tracer_now() {
  return kTracerClock +
         static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace simulated
