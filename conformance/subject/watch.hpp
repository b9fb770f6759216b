// SPDX-License-Identifier: Apache-2.0
// What a call into a plugin must leave as it was: the floating-point environment, signals, the
// standard output and the settings of the process. A violation is told once for each function, and
// what was changed is changed back, so that it does not fail other checks.
#pragma once

#include <signal.h>
#include <tenon/abi.h>

#include <atomic>
#include <cstdint>

#include "harness/session.hpp"

namespace tenon::kit {

// From here on calls are watched, and what they change is told to `watched`. The state of the
// process at this moment is the right one.
void start_watching(Session& watched);
void stop_watching();  // for measurements

// One function of the plugin. Static: one object for each.
struct WatchedFunction {
  const char* name = "";
  std::atomic<uint32_t> calls{0};
};

// Compares the state before with that after one call. Calls may nest, and run on many threads.
class Watch {
 public:
  explicit Watch(WatchedFunction&);
  ~Watch();
  Watch(const Watch&) = delete;

  // A status that the call returned: it must be one of the codes of tenon/abi.h.
  tenon_status status(tenon_status returned);

 private:
  void compare_thread();

  WatchedFunction& function_;
  bool is_active_;
  uint32_t vector_control_ = 0;  // MXCSR without its flags; FPCR
  uint16_t x87_control_ = 0;
  sigset_t blocked_{};
};

}  // namespace tenon::kit
