// SPDX-License-Identifier: Apache-2.0
#include "support/host.hpp"

#include <atomic>

namespace tenon::graph {
namespace {

template <class Api>
const Api* found(std::atomic<const Api*>& known, const char* name, uint32_t version) {
  const Api* api = known.load(std::memory_order_acquire);
  if (api) [[likely]]
    return api;
  api = static_cast<const Api*>(host->service_find(name, version));
  known.store(api, std::memory_order_release);
  return api;
}

Tensor copy_to(tenon_device_id device, const Tensor& tensor) {
  ErrorSink err;
  tenon_tensor* copy;
  err.check(host->tensor_create(device, tensor->dtype, tensor->ndim, tensor->shape, &copy, err));
  Tensor result = Tensor::adopt(copy);
  if (device != TENON_DEVICE_META) err.check(host->tensor_copy(copy, tensor.get(), err));
  return result;
}

}  // namespace

const tenon_autograd_api* autograd() {
  static constinit std::atomic<const tenon_autograd_api*> known{nullptr};
  return found(known, TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION);
}

const tenon_calls_api* calls() {
  static constinit std::atomic<const tenon_calls_api*> known{nullptr};
  return found(known, TENON_CALLS_SERVICE, TENON_CALLS_VERSION);
}

const tenon_amp_api* amp() {
  static constinit std::atomic<const tenon_amp_api*> known{nullptr};
  return found(known, TENON_AMP_SERVICE, TENON_AMP_VERSION);
}

const tenon_packed_constants_api* packed_constants() {
  static constinit std::atomic<const tenon_packed_constants_api*> known{nullptr};
  return found(known, TENON_PACKED_CONSTANTS_SERVICE, TENON_PACKED_CONSTANTS_VERSION);
}

bool requires_grad(const tenon_tensor* tensor) {
  return tensor->layers != 0 && autograd() && autograd()->requires_grad(tensor);
}

Tensor copy_of(const Tensor& tensor) { return copy_to(tensor->device, tensor); }

Tensor on_host(const Tensor& tensor) {
  const tenon_device_id device = host->device_host();
  if (tensor->device == device && tensor->flags & TENON_TENSOR_CONTIGUOUS) return tensor;
  return copy_to(device, tensor);
}

}  // namespace tenon::graph
