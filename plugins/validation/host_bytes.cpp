// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

namespace tenon::validation {
namespace {

// The bytes of the tensor's storage, and the host's, as tensors that can be copied to one another.
struct Ends {
  Tensor device, host_side;
};

Ends ends_of(tenon_tensor* tensor, int64_t offset, void* memory, int64_t bytes) {
  ErrorSink err;
  const int64_t one = 1;
  tenon_tensor *view = nullptr, *wrapped = nullptr;
  err.check(host->tensor_view(tensor, TENON_DTYPE_U8, 1, &bytes, &one, offset, &view, err));
  Tensor device = Tensor::adopt(view);
  err.check(host->tensor_wrap(host->device_host(), TENON_DTYPE_U8, 1, &bytes, nullptr, memory, 0,
                              nullptr, nullptr, &wrapped, err));
  return {std::move(device), Tensor::adopt(wrapped)};
}

}  // namespace

bool is_host_memory(tenon_device_id device) {
  tenon_device_info info = {};
  info.struct_size = sizeof info;
  return host->device_info(device, &info, nullptr) == TENON_OK &&
         info.flags & TENON_DEVICE_HOST_MEMORY;
}

void read_bytes(tenon_tensor* tensor, int64_t offset, void* into, int64_t bytes) {
  if (bytes == 0) return;
  if (is_host_memory(tensor->device)) {
    std::memcpy(into, static_cast<const char*>(tensor->data) + offset, static_cast<size_t>(bytes));
    return;
  }
  ErrorSink err;
  Ends ends = ends_of(tensor, offset, into, bytes);
  err.check(host->tensor_copy(ends.host_side.get(), ends.device.get(), err));
}

void write_bytes(tenon_tensor* tensor, int64_t offset, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  if (is_host_memory(tensor->device)) {
    std::memcpy(static_cast<char*>(tensor->data) + offset, from, static_cast<size_t>(bytes));
    return;
  }
  ErrorSink err;
  Ends ends = ends_of(tensor, offset, const_cast<void*>(from), bytes);
  err.check(host->tensor_copy(ends.device.get(), ends.host_side.get(), err));
}

Tensor create(tenon_device_id device, int32_t dtype, int32_t ndim, const int64_t* shape) {
  ErrorSink err;
  tenon_tensor* created = nullptr;
  err.check(host->tensor_create(device, dtype, ndim, shape, &created, err));
  return Tensor::adopt(created);
}

Tensor copy_to(tenon_device_id device, tenon_tensor* tensor) {
  ErrorSink err;
  Tensor copy = create(device, tensor->dtype, tensor->ndim, tensor->shape);
  err.check(host->tensor_copy(copy.get(), tensor, err));
  return copy;
}

std::vector<unsigned char> elements_of(tenon_tensor* tensor) {
  Tensor dense;
  if (!(tensor->flags & TENON_TENSOR_CONTIGUOUS)) {
    dense = copy_to(host->device_host(), tensor);
    tensor = dense.get();
  }
  const int64_t bytes = tensor->numel * host->dtype_size(tensor->dtype);
  std::vector<unsigned char> elements(static_cast<size_t>(bytes));
  read_bytes(tensor, 0, elements.data(), bytes);
  return elements;
}

}  // namespace tenon::validation
