// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/fork.hpp"

#include <pthread.h>

#include <vector>

namespace tenon::core {
namespace {

struct Locks {
  std::mutex mutex;
  std::vector<std::mutex*> all;
};

Locks& locks() {
  static auto* instance = new Locks;
  return *instance;
}

void before_fork() {
  locks().mutex.lock();
  for (std::mutex* mutex : locks().all) mutex->lock();
}

void after_fork() {
  for (std::mutex* mutex : locks().all) mutex->unlock();
  locks().mutex.unlock();
}

}  // namespace

void lock_across_fork(std::mutex& mutex) {
  static const int registered = pthread_atfork(before_fork, after_fork, after_fork);
  (void)registered;
  std::lock_guard lock(locks().mutex);
  locks().all.push_back(&mutex);
}

}  // namespace tenon::core
