// SPDX-License-Identifier: Apache-2.0
// Results without a copy: while a kernel runs, the first tensors that it allocates in the form of
// its results are the host's own result tensors.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "api/tensor.hpp"

namespace tenon::paddle {

class Offer {
 public:
  // For the calling thread, until this object is gone. Empty handles are not offered.
  explicit Offer(std::span<const Tensor> results);
  ~Offer();
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  // The author may have kept a tensor beyond the call: it becomes a copy, so that it does not
  // change with the result. After all that belongs to the call is gone. Throws if a view was kept.
  void settle();

 private:
  friend bool take_offer(pd::DataType dtype, const std::vector<int64_t>& shape,
                         tenon_device_id device, pd::Tensor* out);
  struct Entry {
    Tensor result;
    uint32_t users;  // of its storage, before the call
    bool is_taken = false;
    std::weak_ptr<pd::TensorImpl> taker;
  };
  std::vector<Entry> entries_;
  Offer* outer_;
};

// True: `*out` is a result tensor of the running kernel, of this form and with undefined contents.
bool take_offer(pd::DataType dtype, const std::vector<int64_t>& shape, tenon_device_id device,
                pd::Tensor* out);

}  // namespace tenon::paddle
