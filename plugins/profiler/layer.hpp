// SPDX-License-Identifier: Apache-2.0
// The layer: one operator call, seen from outside.
#pragma once

#include <tenon/services/profiler.h>

#include <tenon/kernel.hpp>

namespace tenon::profiler {

class Recorder;

extern int32_t layer;  // its number; -1: nothing was started yet

struct ThreadState {
  Recorder* recorder = nullptr;  // while this thread records
  tenon_observer observer = {};  // the innermost; `after` NULL: none
  bool is_observing = false;     // an observer of this thread runs: its own calls are not reported
};
extern constinit thread_local ThreadState state;

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err);

}  // namespace tenon::profiler
