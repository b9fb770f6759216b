// SPDX-License-Identifier: Apache-2.0
// The layer: casts the tensors of a call, and passes it on.
#pragma once

#include "region.hpp"

namespace tenon::amp {

extern int32_t layer;  // its number; -1: there was no region yet

// Regions of this thread, and what they have cast.
struct ThreadState {
  std::vector<Region> regions;
  std::vector<bool> outer;  // whether the layer was on where each region began
  tenon_amp_casts casts = {.struct_size = sizeof(tenon_amp_casts)};
};
ThreadState& thread_state();

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err);

}  // namespace tenon::amp
