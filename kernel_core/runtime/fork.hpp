// SPDX-License-Identifier: Apache-2.0
// Data loaders fork. The child has only the thread that called fork; what other threads held or ran
// at that moment is put right here.
#pragma once

#include <mutex>

namespace tenon::core {

// `before` runs in the order of registration, `after` in the opposite one, in parent and child.
struct ForkHandler {
  void (*before)(void* user);
  void (*after)(void* user, bool in_child);
  void* user;
};
void add_fork_handler(const ForkHandler& handler);

// A lock that another thread holds would stay locked in the child for ever; so the forking thread
// takes it first. For locks that live as long as the process. Of two that are ever held together,
// the one taken first is registered first.
template <class Mutex>
void lock_across_fork(Mutex& mutex) {
  add_fork_handler({[](void* user) { static_cast<Mutex*>(user)->lock(); },
                    [](void* user, bool) { static_cast<Mutex*>(user)->unlock(); }, &mutex});
}

}  // namespace tenon::core
