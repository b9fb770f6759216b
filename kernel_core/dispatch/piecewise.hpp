// SPDX-License-Identifier: Apache-2.0
// Calls that are decided once and run on pieces of their tensors, elements or rows (tenon/services/calls.h). A caller cannot do
// this above the dispatcher: a call for each block would decide again what is known, and make a tensor for each piece.
#pragma once

#include <tenon/abi.h>
#include <tenon/services/calls.h>

namespace tenon::core {

tenon_piecewise* prepare_piecewise(const tenon_op* op, const tenon_value* args);
int32_t piecewise_holds(const tenon_piecewise* call, tenon_tensor* const* tensors, uint32_t count);
const tenon_kernel_def* piecewise_kernel(const tenon_piecewise* call, const tenon_value** args);
tenon_status run_piece(const tenon_piecewise* call, tenon_tensor* const* tensors,
                       tenon_tensor* const* results, tenon_err* err);
void release_piecewise(tenon_piecewise* call);

}  // namespace tenon::core
