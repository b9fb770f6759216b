// SPDX-License-Identifier: Apache-2.0
// Extension slots: one opaque pointer per tensor for each service that registered one.
#pragma once

#include <string>
#include <vector>

#include "kernel_core/runtime/tensor.hpp"

namespace tenon::core {

// Run the registered destructors on what the tensor carries.
void drop_extensions(TensorImpl* tensor) noexcept;

// The slots that a plugin registered and that tensors have carried values in. Tensors are not
// listed anywhere, so one of them may still do.
std::vector<std::string> used_extension_slots(const void* owner);

}  // namespace tenon::core
