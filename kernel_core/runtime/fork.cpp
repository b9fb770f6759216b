// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/fork.hpp"

#include <pthread.h>

#include <algorithm>
#include <vector>

namespace tenon::core {
namespace {

std::vector<ForkHandler>& handlers() {
  static auto* all = new std::vector<ForkHandler>;
  return *all;
}

void before_fork() {
  for (const ForkHandler& handler : handlers()) handler.before(handler.user);
}

void after_fork(bool in_child) {
  auto& all = handlers();
  for (auto handler = all.rbegin(); handler != all.rend(); ++handler)
    handler->after(handler->user, in_child);
}

}  // namespace

void add_fork_handler(const ForkHandler& handler) {
  auto& all = handlers();
  if (all.empty())
    pthread_atfork(
        before_fork, [] { after_fork(false); }, [] { after_fork(true); });
  auto later = [](const ForkHandler& a, const ForkHandler& b) { return a.order < b.order; };
  all.insert(std::upper_bound(all.begin(), all.end(), handler, later), handler);
}

}  // namespace tenon::core
