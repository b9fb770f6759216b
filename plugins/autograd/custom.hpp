// SPDX-License-Identifier: Apache-2.0
// Functions whose backward the user writes, and the tensors they keep for it.
#pragma once

#include "support.hpp"

namespace tenon::autograd {

// -- service functions
// -----------------------------------------------------------------------------
tenon_status record(const char* name, tenon_tensor* const* inputs, uint32_t ninputs,
                    tenon_tensor* const* outputs, uint32_t noutputs,
                    tenon_custom_backward_fn backward, void* user, tenon_drop_fn drop,
                    tenon_err* err);
tenon_status saved_create(tenon_tensor* tensor, int32_t is_output, tenon_saved** out,
                          tenon_err* err);
tenon_status saved_unpack(tenon_saved* saved, tenon_tensor** out, tenon_err* err);
void saved_destroy(tenon_saved* saved);

}  // namespace tenon::autograd
