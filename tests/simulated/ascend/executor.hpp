// SPDX-License-Identifier: Apache-2.0
// Executors of planned calls.
#pragma once

#include "tensor.hpp"

namespace simulated::aclnn {

// Plans ask for workspace, so that a caller who forgets it is found out.
constexpr uint64_t kWorkspace = 512;

aclOpExecutor* make_executor(const char* function, std::vector<const aclTensor*> tensors,
                             std::vector<View> views, std::function<void(std::vector<View>&)> work);

}  // namespace simulated::aclnn
