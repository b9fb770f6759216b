// SPDX-License-Identifier: Apache-2.0
// The layer: what a call with dual tensors does.
#pragma once

#include <tenon/abi.h>

namespace tenon::forward {

tenon_status layer_call(void* self, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err);

}  // namespace tenon::forward
