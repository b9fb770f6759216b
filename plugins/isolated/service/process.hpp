// SPDX-License-Identifier: Apache-2.0
// One isolated process: started, watched and reaped by a thread of its own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "wire/lane.hpp"

namespace tenon::isolated {

class Process : public std::enable_shared_from_this<Process> {
 public:
  // A process that waits for its first request. NULL: err says why.
  static std::shared_ptr<Process> start(tenon_err* err);
  ~Process();

  Shared& shared() { return *shared_; }
  pid_t id() const { return id_; }
  bool is_gone() const { return is_gone_.load(std::memory_order_acquire); }
  // It is gone, or will be as soon as the operating system lets it.
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  // "died: signal 9 (Killed)"; once it has ended.
  std::string how_it_ended() const;

  // End it. `reason` is what how_it_ended() says from now on; the first one counts.
  void end(const std::string& reason);
  // True if it is gone within `timeout_ns`.
  bool wait_gone(uint64_t timeout_ns);

 private:
  Process() = default;
  bool map_shared(tenon_err* err);
  // On the thread that keeps it:
  void keep();
  int spawn();   // errno, or 0
  void watch();  // until it is gone

  static constexpr int kNotStarted = -1;
  std::atomic<int> start_result_{kNotStarted};
  Shared* shared_ = nullptr;
  int descriptor_ = -1;
  std::string program_;
  pid_t id_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string ending_;
  bool is_reaped_ = false;  // its number may belong to another process now
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> is_gone_{false};
};

}  // namespace tenon::isolated
