// SPDX-License-Identifier: Apache-2.0
// Extension slots: one opaque pointer per tensor for each service that registered one.
#pragma once

#include "kernel_core/runtime/tensor.hpp"

namespace tenon::core {

// Run the registered destructors on what the tensor carries.
void drop_extensions(TensorImpl* tensor) noexcept;

}  // namespace tenon::core
