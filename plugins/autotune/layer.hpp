// SPDX-License-Identifier: Apache-2.0
// The layer: sees every call of a thread that tunes, and runs it by the kernel that was chosen.
#pragma once

#include <tenon/abi.h>

namespace tenon::autotune {

extern int32_t layer;  // its number; -1: not registered yet

struct ThreadState {
  uint32_t flags = 0;         // of the last push: TENON_AUTOTUNE_MEASURE
  bool has_flags = false;     // push was called, and pop not yet
  bool is_measuring = false;  // calls of this thread are being measured: they run as they are
};
extern constinit thread_local ThreadState state;
extern uint32_t default_flags;  // of other threads, from TENON_AUTOTUNE

// Choices that threads have at hand are void from here on.
void forget_choices_of_threads();

tenon_status layer_call(void* self, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err);

}  // namespace tenon::autotune
