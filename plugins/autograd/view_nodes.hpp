// SPDX-License-Identifier: Apache-2.0
// Graph nodes of views and of writes into views; views.hpp explains them.
#pragma once

#include "node.hpp"
#include "rules.hpp"

namespace tenon::autograd {

enum class ViewUse { kRead, kWrite };

// Fails, with a text that says why, if gradients cannot pass through `view` as a view of `base`.
tenon_status check_view(const char* operation, const tenon_tensor& view, const tenon_tensor& base,
                        ViewUse use, tenon_err* err);

// New nodes, without references. They return NULL when memory runs out. `info` describes the
// operator that made the view, and is NULL if the view's history was made anew after a write to its
// base.
Node* new_view_node(const tenon_tensor& view, const tenon_tensor& base, Variable* of_base,
                    const OperatorInfo* info = nullptr);
Node* new_view_write_node(const tenon_tensor& view, const tenon_tensor& base, Variable* of_base,
                          Variable* of_view);

}  // namespace tenon::autograd
