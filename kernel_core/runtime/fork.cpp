// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/fork.hpp"

#include <pthread.h>

#include <vector>

namespace tenon::core {
namespace {

struct Handlers {
  std::mutex mutex;
  std::vector<ForkHandler> all;
};

Handlers& handlers() {
  static auto* instance = new Handlers;
  return *instance;
}

void before_fork() {
  handlers().mutex.lock();
  for (const ForkHandler& handler : handlers().all) handler.before(handler.user);
}

void after_fork(bool in_child) {
  auto& all = handlers().all;
  for (auto handler = all.rbegin(); handler != all.rend(); ++handler)
    handler->after(handler->user, in_child);
  handlers().mutex.unlock();
}

}  // namespace

void add_fork_handler(const ForkHandler& handler) {
  static const int registered = pthread_atfork(
      before_fork, [] { after_fork(false); }, [] { after_fork(true); });
  (void)registered;
  std::lock_guard lock(handlers().mutex);
  handlers().all.push_back(handler);
}

}  // namespace tenon::core
