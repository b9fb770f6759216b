// SPDX-License-Identifier: Apache-2.0
// Memory of the host as device memory: allocation, copies, patterns.
#pragma once

#include <tenon/abi.h>

namespace tenon::cpu {

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err);
void free(tenon_device device, void* memory, uint64_t bytes, tenon_stream stream);
tenon_status copy(tenon_device device, const tenon_copy_request* request, tenon_err* err);
tenon_status fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes, tenon_stream stream, tenon_err* err);

}  // namespace tenon::cpu
