// SPDX-License-Identifier: Apache-2.0
// The layer: hands the calls of a thread that records to its recording.
#pragma once

#include "record/recording.hpp"

namespace tenon::graph {

struct ThreadState {
  Recording* recording = nullptr;
  int depth = 0;  // of calls that run below the layer: what they call is their own business
};
extern constinit thread_local ThreadState state;

// Does this thread record, outside of any kernel?
inline Recording* current_recording() {
  return state.depth || !state.recording || state.recording->is_over() ? nullptr : state.recording;
}

// Registers the layer at its first use, and switches it for this thread.
tenon_status enable_layer(bool on, tenon_err* err);

}  // namespace tenon::graph
