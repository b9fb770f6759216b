// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

tenon_tensor* Float32Call::copy_of(const tenon_tensor* tensor) {
  tenon_tensor& copy = copies_[count_];
  copy = *tensor;
  copy.dtype = TENON_DTYPE_F32;
  copy.dl_dtype = {2, 32, 1};
  if (tensor->numel > 0 && status_ == TENON_OK) {
    status_ = host->scratch(ctx_, static_cast<uint64_t>(tensor->numel) * 4, &copy.data, err_);
  }
  ++count_;
  return &copy;
}

const tenon_tensor* Float32Call::argument(const tenon_tensor* tensor) {
  if (!tensor || !is_low_precision(tensor->dtype)) return tensor;
  tenon_tensor* copy = copy_of(tensor);
  if (status_ == TENON_OK) {
    const char* from = data_of<char>(tensor);
    const int size = kDtypeSize[tensor->dtype];
    parallel(tensor->numel, 1, [&](int64_t begin, int64_t end) {
      widen(tensor->dtype, from + begin * size, size, data_of<float>(copy) + begin, end - begin);
    });
  }
  return copy;
}

tenon_tensor* Float32Call::argument(tenon_tensor* tensor) {
  if (!tensor || !is_low_precision(tensor->dtype)) return tensor;
  outputs_[count_] = tensor;
  return copy_of(tensor);
}

tenon_status Float32Call::finish(tenon_status of_kernel) {
  if (of_kernel != TENON_OK) return of_kernel;
  for (int i = 0; i < count_; ++i) {
    const tenon_tensor* to = outputs_[i];
    if (!to) continue;
    const int size = kDtypeSize[to->dtype];
    parallel(to->numel, 1, [&](int64_t begin, int64_t end) {
      narrow(to->dtype, data_of<float>(&copies_[i]) + begin, data_of<char>(to) + begin * size, size,
             end - begin);
    });
  }
  return TENON_OK;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
