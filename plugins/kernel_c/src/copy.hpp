// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/abi.h>

namespace tenon::kernel_c {

// Between tensors of one shape and dtype, with any strides; nothing if they are the same memory.
tenon_status copy_elements(tenon_ctx* ctx, const tenon_tensor* from, tenon_tensor* to,
                           tenon_err* err);

}  // namespace tenon::kernel_c
