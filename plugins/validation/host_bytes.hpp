// SPDX-License-Identifier: Apache-2.0
// Memory of tensors on any device, as bytes on the host.
#pragma once

#include <tenon/kernel.hpp>

#include <vector>

namespace tenon::validation {

bool is_host_memory(tenon_device_id device);

// `offset` counts bytes from the tensor's first element; both may lie anywhere in its storage.
void read_bytes(tenon_tensor* tensor, int64_t offset, void* into, int64_t bytes);
void write_bytes(tenon_tensor* tensor, int64_t offset, const void* from, int64_t bytes);

// The elements of a tensor, dense.
std::vector<unsigned char> elements_of(tenon_tensor* tensor);

// A new, dense tensor on `device`.
Tensor create(tenon_device_id device, int32_t dtype, int32_t ndim, const int64_t* shape);
// A dense copy on `device`.
Tensor copy_to(tenon_device_id device, tenon_tensor* tensor);

}  // namespace tenon::validation
