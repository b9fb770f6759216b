// SPDX-License-Identifier: Apache-2.0
// The layer: one operator call, watched.
#pragma once

#include <tenon/services/validation.h>

#include <tenon/kernel.hpp>

namespace tenon::validation {

extern int32_t layer;  // its id; -1: validation was never enabled

// The mode that this thread set last.
struct State {
  tenon_validation_options options = {};
  uint64_t calls = 0;
  bool is_watching = false;  // a guarded call of this thread runs
};
extern constinit thread_local State state;

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err);

}  // namespace tenon::validation
