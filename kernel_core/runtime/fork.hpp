// SPDX-License-Identifier: Apache-2.0
// Data loaders fork. The child has only the thread that called fork; what other threads held or ran
// at that moment is put right here.
#pragma once

namespace tenon::core {

// Of two locks that are ever held together, the one taken first comes first.
enum class ForkOrder { kDevices, kNewMemory, kMemory, kRandom, kThreads };

// `before` runs in this order, `after` in the opposite one, in parent and child.
struct ForkHandler {
  ForkOrder order;
  void (*before)(void* user);
  void (*after)(void* user, bool in_child);
  void* user;
};
// For static initialisers only: one that came later could come while another thread forks, which
// would leave the child with what was half made. So whatever has a handler is made as the library
// loads.
void add_fork_handler(const ForkHandler& handler);

// A lock that another thread holds would stay locked in the child for ever; so the forking thread
// takes it first. For locks that live as long as the process.
template <class Mutex>
void lock_across_fork(ForkOrder order, Mutex& mutex) {
  add_fork_handler({order, [](void* user) { static_cast<Mutex*>(user)->lock(); },
                    [](void* user, bool) { static_cast<Mutex*>(user)->unlock(); }, &mutex});
}

}  // namespace tenon::core
