// SPDX-License-Identifier: Apache-2.0
// Data loaders fork. A lock that another thread holds at that moment would stay locked in the child
// for ever; so the forking thread takes such locks first, and both sides let go after.
#pragma once

#include <mutex>

namespace tenon::core {

// For locks that live as long as the process. Of two that are ever held together, the one taken first
// is registered first.
void lock_across_fork(std::mutex& mutex);

}  // namespace tenon::core
