// SPDX-License-Identifier: Apache-2.0
// What happens between a caller and the dispatcher when an argument has a gradient.
#pragma once

#include "support.hpp"

namespace tenon::autograd {

// tenon_layer_def.call
tenon_status layer_call(void* self, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err);

}  // namespace tenon::autograd
