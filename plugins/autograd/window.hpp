// SPDX-License-Identifier: Apache-2.0
// Nodes of the linear maps between a tensor and a window of its memory: see views.hpp.
#pragma once

#include "node.hpp"
#include "rules.hpp"

namespace tenon::autograd {

enum class WindowUse { kRead, kWrite };

// Can gradients pass through `view` as a window of its base? Fails with text otherwise.
tenon_status check_window(const char* operation, const tenon_tensor& view, const tenon_tensor& base,
                          WindowUse use, tenon_err* err);

// Nodes without references. NULL: out of memory. `info`: of the operator that made the view, if it
// is its history.
Node* new_take(const tenon_tensor& view, const tenon_tensor& base, Variable* of_base,
               const OperatorInfo* info = nullptr);
Node* new_write(const tenon_tensor& view, const tenon_tensor& base, Variable* of_base,
                Variable* of_view);

}  // namespace tenon::autograd
