// SPDX-License-Identifier: Apache-2.0
#include "queue.hpp"

#include <atomic>
#include <utility>

#include "profile.hpp"

namespace reference {
namespace {
std::atomic<int> workers{0};
}  // namespace

int live_workers() { return workers.load(); }

Queue::Queue(Profile* profile, tenon_stream stream) : profile_(profile), stream_(stream) {
  thread_ = std::thread([this] { run(); });
}

uint64_t Queue::submit(Task task) {
  std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
  return ++submitted_;
}

uint64_t Queue::last() const {
  std::lock_guard lock(mutex_);
  return submitted_;
}

bool Queue::passed(uint64_t number) const {
  std::lock_guard lock(mutex_);
  return completed_ >= number;
}

void Queue::wait(uint64_t number) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return completed_ >= number; });
}

Result Queue::take_failure() {
  std::lock_guard lock(mutex_);
  return std::exchange(failure_, {});
}

void Queue::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Queue::run() {
  ++workers;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) break;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    Result result = profile_->run(task, stream_);
    task.work = nullptr;  // releases what it captured before the task counts as done
    lock.lock();
    // Later work runs all the same, as on hardware; the first failure is the one to report.
    if (result.status != TENON_OK && failure_.status == TENON_OK) failure_ = std::move(result);
    ++completed_;
    changed_.notify_all();
  }
  lock.unlock();
  --workers;
}

}  // namespace reference
