// SPDX-License-Identifier: Apache-2.0
// Calls into a plugin while it is being loaded or unloaded. The contract forbids exceptions there;
// one that escapes all the same becomes a failure of the call.
#pragma once

#include "kernel_core/types/status.hpp"

namespace tenon::core {

// Run `call` and return its status; whatever escapes from it is reported as `what` > text. A
// failure without a text is given one.
template <class Call>
tenon_status guarded(const char* what, tenon_err* err, Call&& call) {
  tenon_status status = TENON_INTERNAL;
  try {
    status = call();
    if (status != TENON_OK)
      fail(err, status, "%s failed with code %d and no text", what, static_cast<int>(status));
  } catch (...) {
    return fail_escaped(err, what);
  }
  return status;
}

}  // namespace tenon::core
